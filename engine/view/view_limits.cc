#include "engine/view/view_limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/strings.h"

namespace batchfs {

void check_restricted_length(const Dataset& dataset, const std::string& dim,
                             const std::string& path) {
  constexpr std::int64_t kMaxLength = INT64_C(1) << 26;  // a label a minute for a century
  if (dataset.dim_size(dim) > kMaxLength)
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' has {} positions; the most is {}", path, dim,
                            dataset.dim_size(dim), kMaxLength));
}

void check_list(const Dataset& dataset, std::uint64_t bytes, const std::string& path,
                std::string_view what) {
  const std::uint64_t limit = dataset.memory_limit();
  if (bytes <= max_lists(limit)) return;
  throw Error(ErrorCode::no_memory,
              fmt::format("{}: {} take {} of memory or more, and the lists of a view get {} of {}; "
                          "give more with --memory",
                          path, what, format_size(bytes), format_size(max_lists(limit)),
                          format_size(limit)));
}

void GrowingStarts::check() const {
  check_list(dataset_, (starts_->size() + kStep) * sizeof(std::int64_t), path_,
             "the starts of its windows");
}

void GrowingStarts::reserve(std::int64_t count) {
  check_list(dataset_, static_cast<std::uint64_t>(count) * sizeof(std::int64_t), path_,
             "the starts of its windows");
  starts_->reserve(static_cast<std::size_t>(count));
}

std::uint64_t max_coordinates(const Dataset& dataset) {
  constexpr std::uint64_t kMax = 64 << 20;
  return std::min(kMax, max_lists(dataset.memory_limit()) / 2);
}

}  // namespace batchfs
