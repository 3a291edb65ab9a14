#include "engine/write/run_record.h"

#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/write/run_identity.h"

namespace batchfs {

namespace {

std::string text_of_buffer(const Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void NumberRanges::add(std::int64_t number) {
  auto next = ranges_.upper_bound(number);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->second >= number) return;
    if (before->second == number - 1) {
      before->second = number;
      if (next != ranges_.end() && next->first == number + 1) {
        before->second = next->second;
        ranges_.erase(next);
      }
      return;
    }
  }
  if (next != ranges_.end() && next->first == number + 1) {
    const std::int64_t last = next->second;
    ranges_.erase(next);
    ranges_[number] = last;
    return;
  }
  ranges_[number] = number;
}

bool NumberRanges::contains(std::int64_t number) const {
  const auto next = ranges_.upper_bound(number);
  return next != ranges_.begin() && std::prev(next)->second >= number;
}

std::int64_t NumberRanges::count() const {
  std::int64_t sum = 0;
  for (const auto& [first, last] : ranges_) sum += last - first + 1;
  return sum;
}

Json NumberRanges::json() const {
  Json list = Json::array();
  for (const auto& [first, last] : ranges_) list.push_back(Json::array({first, last}));
  return list;
}

NumberRanges NumberRanges::parse(const JsonRef& json) {
  NumberRanges result;
  for (const JsonRef& range : json.elements()) {
    const std::vector<JsonRef> ends = range.elements();
    if (ends.size() != 2) throw range.error("expected [first, last]");
    const std::int64_t first = ends[0].integer(0);
    result.ranges_[first] = ends[1].integer(first);
  }
  return result;
}

RunRecord::RunRecord(OutputStore& output, Json identity, int task, int tasks)
    : output_(output), identity_(std::move(identity)), task_(task), tasks_(tasks) {}

std::string RunRecord::key_of(int task) const {
  return fmt::format("{}/done-{}.json", kWorkingFolder, task);
}

void RunRecord::open() {
  claim_output(output_, identity_);
  lock_ = output_.lock(fmt::format("lock-{}", task_));
  if (lock_ == nullptr)
    throw Error(ErrorCode::invalid_argument,
                tasks_ > 1 ? fmt::format("another process writes task {}", task_)
                           : "another process writes the output",
                output_.url());
  if (const std::optional<Buffer> bytes = output_.get(key_of(task_))) {
    const Json state = parse_json(text_of_buffer(*bytes), key_of(task_));
    const JsonRef root(state, key_of(task_));
    done_ = NumberRanges::parse(root.at("done"));
    for (int pass = 0; pass < 2; ++pass)
      complete_[pass] = root.at("complete").elements().at(pass).boolean();
  }
}

void RunRecord::save() {
  const Json state = {{"complete", Json::array({complete_[0], complete_[1]})},
                      {"done", done_.json()}};
  output_.sync();
  output_.put(key_of(task_), json_text(state, -1) + "\n");
}

void RunRecord::complete(int pass) {
  if (complete_[pass]) return;
  complete_[pass] = true;
  save();
}

bool RunRecord::may_finish() {
  finish_lock_ = output_.lock("lock-finish");
  return finish_lock_ != nullptr;
}

bool RunRecord::all_complete(int pass) {
  for (int task = 0; task < tasks_; ++task) {
    const std::optional<Buffer> bytes = output_.get(key_of(task));
    if (!bytes) return false;
    const Json state = parse_json(text_of_buffer(*bytes), key_of(task));
    if (!JsonRef(state, key_of(task)).at("complete").elements().at(pass).boolean()) return false;
  }
  return true;
}

}  // namespace batchfs
