#include "engine/write/task_parts.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/store/fingerprint.h"
#include "engine/write/run_identity.h"

namespace batchfs {

namespace {

constexpr int kMaxTasks = 1'000'000;
constexpr std::size_t kMaxNamed = 10;  // missing tasks in a message

std::string part_key(int task) { return fmt::format("part-{:06}", task); }

int tasks_of(const Json& identity) {
  return static_cast<int>(JsonRef(identity, kRunKey).at("tasks").integer(1, kMaxTasks));
}

}  // namespace

TaskParts::TaskParts(OutputStore& output, Json identity)
    : output_(output), identity_(std::move(identity)), tasks_(tasks_of(identity_)) {}

void TaskParts::claim() { claim_output(output_, identity_); }

bool TaskParts::has(int task) const {
  const std::optional<Buffer> bytes = output_.get(part_key(task));
  if (bytes) static_cast<void>(result_of(task, *bytes));
  return bytes.has_value();
}

void TaskParts::put(int task, std::string_view result) {
  const std::string header =
      json_text({{"run", identity_}, {"task", task}, {"digest", fingerprint(result)}}, -1) + "\n";
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(header)),
                                              std::as_bytes(std::span(result))};
  output_.put(part_key(task), parts);
  output_.sync();
}

std::string_view TaskParts::result_of(int task, const Buffer& bytes) const {
  const std::string key = part_key(task);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t end = text.find('\n');
  const std::string_view result =
      end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  Json header;
  bool is_whole = end != std::string_view::npos;
  try {
    if (is_whole) {
      header = parse_json(text.substr(0, end), key);
      const JsonRef root(header, key);
      is_whole = root.at("run").is_object() && root.at("task").integer() == task &&
                 root.at("digest").string() == fingerprint(result);
    }
  } catch (const Error&) {
    is_whole = false;
  }
  if (!is_whole)
    throw Error(ErrorCode::corrupt, "the part is damaged; remove it and run its task again",
                output_.url() + "/" + key);
  check_identity(output_, identity_, header["run"]);
  return result;
}

void TaskParts::for_each(const std::function<void(int task, std::string_view result)>& use) const {
  std::vector<std::string> missing;  // the first ones
  std::size_t count = 0;
  for (int task = 0; task < tasks_; ++task) {
    const std::optional<Buffer> bytes = output_.get(part_key(task));
    if (!bytes) {
      if (++count <= kMaxNamed) missing.push_back(std::to_string(task));
    } else if (count == 0) {
      use(task, result_of(task, *bytes));
    }
  }
  if (count > 0)
    throw Error(ErrorCode::not_found,
                fmt::format("{} of {} parts are missing; run --task {}{}", count, tasks_,
                            join(missing, ", "), count > kMaxNamed ? ", ..." : ""),
                output_.url());
}

}  // namespace batchfs
