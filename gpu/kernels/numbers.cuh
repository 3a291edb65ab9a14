#pragma once
// Arithmetic and casts with the same bits on the GPU as on the processor: no fused multiply-add, a
// rounding for each operation, and the processor's NaN. A GPU returns one NaN for all; x86 returns
// the operand's, quieted, and a negative one of its own for 0 * infinity.

#include "gpu/kernels/lockstep.h"

namespace batchfs::gpu {

#if defined(__CUDACC__)
BATCHFS_GPU std::uint32_t bits_of(float value) { return __float_as_uint(value); }
BATCHFS_GPU float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
BATCHFS_GPU std::uint64_t bits_of(double value) {
  return static_cast<std::uint64_t>(__double_as_longlong(value));
}
BATCHFS_GPU double double_of(std::uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
BATCHFS_GPU float multiply(float a, float b) { return __fmul_rn(a, b); }
BATCHFS_GPU double multiply(double a, double b) { return __dmul_rn(a, b); }
BATCHFS_GPU float add(float a, float b) { return __fadd_rn(a, b); }
BATCHFS_GPU double add(double a, double b) { return __dadd_rn(a, b); }
BATCHFS_GPU double divide(double a, double b) { return __ddiv_rn(a, b); }
#else
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }
inline double double_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }
inline float multiply(float a, float b) { return a * b; }
inline double multiply(double a, double b) { return a * b; }
inline float add(float a, float b) { return a + b; }
inline double add(double a, double b) { return a + b; }
inline double divide(double a, double b) { return a / b; }
#endif

BATCHFS_GPU bool is_nan(float value) { return (bits_of(value) & 0x7fffffffu) > 0x7f800000u; }
BATCHFS_GPU bool is_nan(double value) {
  return (bits_of(value) & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
}
BATCHFS_GPU float quieted(float nan) { return float_of(bits_of(nan) | 0x00400000u); }
BATCHFS_GPU double quieted(double nan) { return double_of(bits_of(nan) | 0x0008000000000000ull); }

/// The result of an operation on a and b, with NaN as the processor has it.
BATCHFS_GPU float settled(float result, float a, float b) {
  if (!is_nan(result)) return result;
  return is_nan(a) ? quieted(a) : is_nan(b) ? quieted(b) : float_of(0xffc00000u);
}
BATCHFS_GPU double settled(double result, double a, double b) {
  if (!is_nan(result)) return result;
  return is_nan(a) ? quieted(a) : is_nan(b) ? quieted(b) : double_of(0xfff8000000000000ull);
}

template <class T>
BATCHFS_GPU T product(T a, T b) {
  return settled(multiply(a, b), a, b);
}
template <class T>
BATCHFS_GPU T sum(T a, T b) {
  return settled(add(a, b), a, b);
}
BATCHFS_GPU double quotient(double a, double b) { return settled(divide(a, b), a, b); }
/// Precondition: b is not a NaN.
BATCHFS_GPU double difference(double a, double b) { return settled(add(a, -b), a, b); }

BATCHFS_GPU double widened(float value) {
  if (!is_nan(value)) return static_cast<double>(value);
  const std::uint64_t bits = bits_of(value);
  return double_of((bits & 0x80000000u) << 32 | 0x7ff8000000000000ull | (bits & 0x007fffffu) << 29);
}

BATCHFS_GPU float narrowed(double value) {
  if (!is_nan(value)) return static_cast<float>(value);
  const std::uint64_t bits = bits_of(value);
  return float_of(static_cast<std::uint32_t>(bits >> 32 & 0x80000000u) | 0x7fc00000u |
                  static_cast<std::uint32_t>(bits >> 29 & 0x007fffffu));
}

/// Half precision is kept in float32, which holds it exactly.
BATCHFS_GPU float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 31, fraction = half & 0x3ffu;
  if (exponent == 31)
    return float_of(sign | 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x00400000u : 0));
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  const float tiny = static_cast<float>(fraction) * 0x1p-24f;
  return float_of(sign | bits_of(tiny));
}

/// Rounded once, to the nearest, ties to even.
BATCHFS_GPU std::uint16_t half_of(double value) {
  const std::uint64_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000u);
  if (is_nan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u | (bits >> 42 & 0x3ffu));
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent > 15) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (exponent < -25) return sign;
  const std::uint64_t digits = (bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
  const int drop = exponent >= -14 ? 42 : 42 + (-14 - exponent);
  const std::uint64_t kept = digits >> drop, rest = digits & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t middle = std::uint64_t{1} << (drop - 1);
  const std::uint64_t rounded = kept + (rest > middle || (rest == middle && (kept & 1)) ? 1 : 0);
  // The digits' leading one, if any, adds 1 to the exponent; so does a carry.
  const std::uint64_t base = exponent >= -14 ? static_cast<std::uint64_t>(exponent + 14) << 10 : 0;
  return static_cast<std::uint16_t>(sign | (base + rounded));
}

/// torch's and ml_dtypes' rounding of a float32; one NaN for all.
BATCHFS_GPU std::uint16_t bfloat16_of(double value) {
  const std::uint32_t word = bits_of(narrowed(value));
  if ((word & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<std::uint16_t>((word + 0x7fffu + (word >> 16 & 1)) >> 16);
}

}  // namespace batchfs::gpu
