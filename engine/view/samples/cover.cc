#include "engine/view/samples/cover.h"

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/error.h"

namespace batchfs {

WindowStretches::WindowStretches(const AxisPlacement& axis) : axis_(axis) {
  if (axis.by_label != nullptr) {
    stretches_.assign(axis.offsets.size(), {0, axis.size});
    return;
  }
  std::vector<std::int64_t> offsets = axis.offsets;
  std::sort(offsets.begin(), offsets.end());
  for (const std::int64_t offset : offsets) {
    const std::int64_t first = axis.scale * offset;
    if (!stretches_.empty() && first <= stretches_.back().first + stretches_.back().second)
      stretches_.back().second = first + axis.size - stretches_.back().first;
    else
      stretches_.emplace_back(first, axis.size);
  }
}

void WindowStretches::check_starts(std::int64_t starts) const {
  constexpr std::int64_t kMaxEntered = INT64_C(1) << 33;
  if (starts <= kMaxEntered / static_cast<std::int64_t>(std::max<std::size_t>(1, size()))) return;
  throw Error(
      ErrorCode::not_supported,
      fmt::format("{} with {} whose windows do not touch: too many to find what samples "
                  "reach; take a larger stride, or fewer offsets",
                  counted(starts, "start"), counted(static_cast<std::int64_t>(size()), "offset")));
}

std::pair<std::int64_t, std::int64_t> WindowStretches::hull(std::int64_t start) const {
  const std::int64_t first = at(0, start).first;
  const auto [last, count] = at(size() - 1, start);
  return {first, last + count - first};
}

}  // namespace batchfs
