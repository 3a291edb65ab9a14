#include "engine/view/view_limits.h"

#include <fmt/format.h>

namespace batchfs {

void check_restricted_length(const Dataset& dataset, const std::string& dim,
                             const std::string& path) {
  constexpr std::int64_t kMaxLength = INT64_C(1) << 26;  // a label a minute for a century
  if (dataset.dim_size(dim) > kMaxLength)
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' has {} positions; the most is {}", path, dim,
                            dataset.dim_size(dim), kMaxLength));
}

}  // namespace batchfs
