#pragma once
// Limits of views.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// Positions of a window, a stride or an offset; and of a window over the edge.
inline constexpr std::int64_t kMaxSteps = INT64_C(1) << 40;
inline constexpr std::int64_t kMaxPadded = INT64_C(1) << 31;

/// Throws not_supported for a dimension that is too long to be looked through, with `path` in
/// front.
void check_restricted_length(const Dataset& dataset, const std::string& dim,
                             const std::string& path);

/// Throws no_memory, with `path` in front, where a list of a view, or what it is made from, takes
/// more than kFreeMetadata and half of --memory. `what` it is: "the rows of the list".
void check_list(const Dataset& dataset, std::uint64_t bytes, const std::string& path,
                std::string_view what);

/// A list of starts that grows. Throws as check_list(), before it takes too much.
class GrowingStarts {
 public:
  GrowingStarts(const Dataset& dataset, const std::string& path) : dataset_(dataset), path_(path) {}
  void push_back(std::int64_t start) {
    if (starts_->size() % kStep == 0) check();
    starts_->push_back(start);
  }
  /// For so many starts; throws too.
  void reserve(std::int64_t count);
  std::int64_t size() const { return static_cast<std::int64_t>(starts_->size()); }
  const std::vector<std::int64_t>& starts() const { return *starts_; }
  std::shared_ptr<const std::vector<std::int64_t>> take() { return std::move(starts_); }

 private:
  static constexpr std::size_t kStep = 1 << 16;
  void check() const;
  const Dataset& dataset_;
  const std::string& path_;
  std::shared_ptr<std::vector<std::int64_t>> starts_ =
      std::make_shared<std::vector<std::int64_t>>();
};

/// Bytes that the list of the parts of chunks may take that a batch is made of: enough for batches
/// of 100,000 samples of a few variables under a small budget.
inline std::uint64_t max_parts(std::uint64_t budget) {
  return budget / 4 + (std::uint64_t{8} << 20);
}

/// Bytes of labels that a view has although nothing needs them. While readers of the hand-off use
/// it, they are in memory a second time; both fit into kFreeMetadata and half of --memory.
std::uint64_t max_coordinates(const Dataset& dataset);

}  // namespace batchfs
