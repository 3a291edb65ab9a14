#pragma once
// Walks over elements of an array in memory in blocks, for TwoPassMoments.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/scan/moments.h"

namespace batchfs {

using Offsets = std::vector<std::int64_t>;  // in elements, ascending

/// Calls `visit` with blocks of the elements at every sum of offsets, one taken per axis, less
/// those at the same places of `before` where that is not null.
template <class Visit>
void for_each_block(const std::vector<Offsets>& axes, const double* values, const double* before,
                    Visit&& visit) {
  constexpr std::size_t kBlock = 1024;
  static_assert(kBlock % TwoPassMoments::kLanes == 0);
  alignas(64) double block[kBlock];
  std::size_t filled = 0;
  static const Offsets kOne{0};
  const Offsets& inner = axes.empty() ? kOne : axes.back();
  const bool contiguous =
      inner.back() - inner.front() + 1 == static_cast<std::int64_t>(inner.size());
  std::vector<std::size_t> at(axes.empty() ? 0 : axes.size() - 1);
  for (;;) {
    std::int64_t base = 0;
    for (std::size_t a = 0; a < at.size(); ++a) base += axes[a][at[a]];
    for (std::size_t i = 0; i < inner.size();) {
      const std::size_t n = std::min(inner.size() - i, kBlock - filled);
      double* to = block + filled;
      if (contiguous) {
        const std::int64_t from = base + inner[i];
        std::memcpy(to, values + from, n * sizeof(double));
        if (before != nullptr)
          for (std::size_t k = 0; k < n; ++k) to[k] -= before[from + static_cast<std::int64_t>(k)];
      } else {
        for (std::size_t k = 0; k < n; ++k) {
          const std::int64_t from = base + inner[i + k];
          to[k] = before != nullptr ? values[from] - before[from] : values[from];
        }
      }
      i += n;
      filled += n;
      if (filled == kBlock) {
        visit(std::span(block, filled));
        filled = 0;
      }
    }
    std::size_t a = at.size();
    while (a > 0 && at[a - 1] + 1 == axes[a - 1].size()) at[--a] = 0;
    if (a == 0) break;
    ++at[a - 1];
  }
  if (filled > 0) visit(std::span(block, filled));
}

}  // namespace batchfs
