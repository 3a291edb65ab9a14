#pragma once
// The logarithms that "normalize" takes with "log1p".

#include <cmath>
#include <cstdint>

namespace batchfs {

/// log(1 + max(x, 0) / scale), in place. NaN stays NaN.
inline void take_logarithms(double* values, std::int64_t count, double scale) {
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = std::log1p((values[i] < 0 ? 0 : values[i]) / scale);
}

}  // namespace batchfs
