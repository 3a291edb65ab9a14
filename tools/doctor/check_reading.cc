// doctor: measures the time for a chunk and a batch of a store.

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/pipeline/engine.h"
#include "engine/view/starter.h"
#include "engine/view/tensors/tensor_layout.h"
#include "fs/formats/formats.h"
#include "tools/cli/given_options.h"
#include "tools/cli/text.h"
#include "tools/cli/view_memory.h"
#include "tools/doctor/checks.h"
#include "tools/monitor/top_screen.h"

namespace batchfs {

namespace {

using enum Check::State;

constexpr std::size_t kMaxTriedGroups = 64;  // searched for variables
constexpr std::uint64_t kBatchBytes = 64 << 20;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::string rate_of(std::uint64_t bytes, double seconds) {
  return rate_text(static_cast<double>(bytes) / std::max(seconds, 1e-9));
}

/// The dataset of the first group that has a variable for tensors; null if there is none.
std::shared_ptr<const Dataset> readable_dataset(const OpenedStore& opened) {
  std::size_t seen = 0;
  for (const auto& [path, group] : opened.hierarchy->groups) {
    if (++seen > kMaxTriedGroups) break;
    try {
      auto dataset = std::make_shared<const Dataset>(opened.store, *opened.hierarchy, path);
      const std::vector<Variable>& all = dataset->variables();
      if (std::any_of(all.begin(), all.end(), [](const Variable& v) {
            return v.array != nullptr && !v.is_coordinate && !v.dims.empty() && fits_tensor(v);
          }))
        return dataset;
    } catch (const Error&) {
      // Dimensions that do not fit together: views of another group may work.
    }
  }
  return nullptr;
}

const Variable* largest_variable(const Dataset& dataset) {
  const Variable* largest = nullptr;
  for (const Variable& variable : dataset.variables())
    if (variable.array != nullptr && !variable.is_coordinate && fits_tensor(variable) &&
        (largest == nullptr || element_count(variable.shape) > element_count(largest->shape)))
      largest = &variable;
  return largest;
}

/// The chunk in the middle of the largest variable: values are often missing in the first one.
Check check_chunk(const Array& array, std::uint64_t budget) {
  const std::string damaged = "`batchfs check STORE` finds all that cannot be read";
  if (array.grid().chunk_count() == 0) return {note, "chunk", "the largest array is empty", ""};
  if (array.chunk_bytes() > budget / 4)
    return {note, "chunk",
            fmt::format("a chunk of {} is {}: more than a quarter of the memory",
                        printable(array.metadata().path), format_size(array.chunk_bytes())),
            "give more with --memory, or copy the store to smaller chunks"};
  const Dims chunk = array.grid().chunk(array.grid().chunk_count() / 2);
  const std::string name = printable(array.chunk_name(chunk));
  try {
    const Box part{Dims(chunk.size(), 0), array.grid().box(chunk).shape};
    const Stopwatch fetching;
    const EncodedChunk encoded = array.fetch(chunk, part);
    const double fetched = fetching.seconds();
    if (encoded.missing)
      return {note, "chunk",
              fmt::format("{} is not stored: its values are the fill value ({})", name,
                          duration_text(fetched)),
              "`batchfs plan` says whether a variable has no chunks at all"};
    Dims strides(chunk.size(), 0);
    std::int64_t bytes = array.type().itemsize;
    for (std::size_t d = chunk.size(); d-- > 0;) {
      strides[d] = bytes;
      bytes *= part.shape[d];
    }
    Buffer values(static_cast<std::size_t>(bytes));
    const Stopwatch decoding;
    array.decode(chunk, encoded, part, values.data(), strides);
    return {
        ok, "chunk",
        fmt::format("{}: {} fetched in {}, decoded to {} in {}", name, format_size(encoded.held()),
                    duration_text(fetched), format_size(static_cast<std::uint64_t>(bytes)),
                    duration_text(decoding.seconds())),
        ""};
  } catch (const Error& error) {
    return {problem, "chunk", printable(error.what()), next_step(error, "", damaged)};
  }
}

/// Checks the first batch of a smaller version of the view that `batchfs view` would write.
Check check_batch_of(const OpenedStore& opened, const StoreOptions& options,
                     const std::shared_ptr<const Dataset>& dataset) {
  try {
    const StarterView starter =
        starter_view(*dataset, "doctor", std::min(kBatchBytes, opened.budget / 4));
    const auto view =
        View::parse(dataset, json_text(starter.view), "doctor", "the view of `batchfs view`");
    Log log;
    Engine engine({.threads = options.threads,
                   .memory = opened.budget,
                   .prefetch = false,
                   .store = opened.store,
                   .held = held_memory(opened, {view})},
                  log);
    const Stopwatch watch;
    const std::shared_ptr<const Batch> batch =
        engine.open({view, &format_named("npy"), 0, 0, 0, 1});
    const double seconds = watch.seconds();
    std::uint64_t bytes = 0;
    for (const MemoryFile& file : batch->files) bytes += file.size();
    const std::string group =
        dataset->path().empty() ? "" : "--group " + shell_word(dataset->path()) + " ";
    return {ok, "batch",
            fmt::format("{} of {} samples in {} ({}), from nothing", format_size(bytes),
                        view->batch_size(), duration_text(seconds), rate_of(bytes, seconds)),
            "next: `batchfs view " +
                printable(group + words_of(opened.given) + shell_word(opened.store->url())) +
                " > view.json`"};
  } catch (const Error& error) {
    return {problem, "batch", printable(error.what()),
            next_step(error, "", "`batchfs check STORE` finds all that cannot be read")};
  }
}

}  // namespace

Checks check_reading(const OpenedStore& opened, const StoreOptions& options) {
  const std::shared_ptr<const Dataset> dataset = readable_dataset(opened);
  if (dataset == nullptr)
    return {{note, "chunk", "no group has a variable that can be in a batch",
             "`batchfs inspect STORE` lists the arrays, and why some cannot be read"}};
  Checks checks{check_chunk(*largest_variable(*dataset)->array, opened.budget)};
  if (checks.front().state != problem) checks.push_back(check_batch_of(opened, options, dataset));
  return checks;
}

}  // namespace batchfs
