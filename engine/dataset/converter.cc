#include "engine/dataset/converter.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "engine/dataset/logarithms.h"

namespace batchfs {

namespace {

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

/// numpy computes half-precision arithmetic in single precision and rounds after each operation.
template <class A>
using Compute = std::conditional_t<std::is_same_v<A, _Float16>, float, A>;

/// The steps of run_numeric() besides masking; steps that are not needed cost nothing.
template <class A, bool kScale, bool kOffset>
A scaled(A value, [[maybe_unused]] A scale, [[maybe_unused]] A offset) {
  if constexpr (kScale)
    value = static_cast<A>(static_cast<Compute<A>>(value) * static_cast<Compute<A>>(scale));
  if constexpr (kOffset)
    value = static_cast<A>(static_cast<Compute<A>>(value) + static_cast<Compute<A>>(offset));
  return value;
}

/// Stored S -> arithmetic A (mask, scale, offset) -> result R.
template <class S, class A, class R, bool kScale, bool kOffset>
void run_scaled(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  const auto scale = static_cast<A>(cf.scale), offset = static_cast<A>(cf.offset);
  const A missing = static_cast<A>(std::numeric_limits<double>::quiet_NaN());
  if (cf.masked.size() > 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      const A stored = static_cast<A>(load<S>(source + i * source_stride));
      const bool masked = std::any_of(cf.masked.begin(), cf.masked.end(), [stored](double mask) {
        return stored == static_cast<A>(mask);
      });
      store(result + i * result_stride,
            static_cast<R>(scaled<A, kScale, kOffset>(masked ? missing : stored, scale, offset)));
    }
    return;
  }
  const A mask =
      cf.masked.empty() ? missing : static_cast<A>(cf.masked.front());  // nothing equals NaN
  const auto loop = [&](std::int64_t from_stride, std::int64_t to_stride) {
    for (std::int64_t i = 0; i < count; ++i) {
      const A stored = static_cast<A>(load<S>(source + i * from_stride));
      const A value = stored == mask ? missing : stored;
      store(result + i * to_stride,
            static_cast<R>(scaled<A, kScale, kOffset>(value, scale, offset)));
    }
  };
  // Constant strides let the compiler vectorise the common case.
  if (source_stride == sizeof(S) && result_stride == sizeof(R))
    loop(sizeof(S), sizeof(R));
  else
    loop(source_stride, result_stride);
}

template <class S, class A, class R>
void run_numeric(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                 std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  const auto run = cf.has_scale    ? cf.has_offset ? run_scaled<S, A, R, true, true>
                                                   : run_scaled<S, A, R, true, false>
                      : cf.has_offset ? run_scaled<S, A, R, false, true>
                                   : run_scaled<S, A, R, false, false>;
  run(cf, count, source, source_stride, result, result_stride);
}

/// numpy's astype("int64") on x86-64: values that do not fit, and NaN, become the smallest number.
template <class S>
std::int64_t to_int64(S value) {
  if constexpr (std::is_integral_v<S>) {
    return static_cast<std::int64_t>(value);
  } else {
    const auto number = static_cast<double>(value);
    return number >= -0x1p63 && number < 0x1p63 ? static_cast<std::int64_t>(number)
                                                : std::numeric_limits<std::int64_t>::min();
  }
}

/// xarray's whole scale without offset: integers stay integers, and floats become such.
template <class S>
void run_integer_scale(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                       std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  const auto scale = static_cast<std::uint64_t>(to_int64(cf.scale));
  for (std::int64_t i = 0; i < count; ++i)
    store(result + i * result_stride,
          static_cast<std::int64_t>(
              static_cast<std::uint64_t>(to_int64(load<S>(source + i * source_stride))) * scale));
}

template <class S>
void run_integer_scale_to_float(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                                std::int64_t source_stride, std::byte* result,
                                std::int64_t result_stride) {
  run_integer_scale<S>(cf, count, source, source_stride, result, result_stride);
  for (std::int64_t i = 0; i < count; ++i)
    store(result + i * result_stride,
          static_cast<double>(load<std::int64_t>(result + i * result_stride)));
}

template <class S>
void run_bool(const CfDecoding&, std::int64_t count, const std::byte* source,
              std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  for (std::int64_t i = 0; i < count; ++i)
    store(result + i * result_stride,
          static_cast<std::uint8_t>(load<S>(source + i * source_stride) != S{}));
}

/// Counts since the reference date in counts of the result's unit. Throws when they do not fit.
std::int64_t time_result(const CfDecoding& cf, __int128 counts) {
  __int128 value = counts;
  if (cf.time == CfDecoding::Time::datetime)
    value += static_cast<__int128>(cf.origin_seconds) * cf.per_second + cf.origin_rest;
  if (value > INT64_MAX || value <= INT64_MIN)
    throw Error(
        ErrorCode::not_supported,
        "a time lies outside of what datetime64[ns] holds (1677 to 2262); use --decode raw");
  return static_cast<std::int64_t>(value);
}

/// Counts of the result's unit in a length of time, by xarray's steps: seconds first, then by
/// thousands until the number is whole. One product with the size of the unit would round to a
/// neighbour. Units of more than a nanosecond take the nearest count.
template <class T>
__int128 timedelta_counts(const CfDecoding& cf, T number) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t unit_ns = kSecond / cf.per_second;
  std::int64_t step_ns = cf.time_step * unit_ns;
  if (step_ns > kSecond) {
    number *= static_cast<T>(step_ns / kSecond);
    step_ns = kSecond;
  }
  for (; step_ns > 1 && std::floor(number) != number; step_ns /= 1000) number *= 1000;
  if (!(std::fabs(static_cast<double>(number)) < 1e28))
    throw Error(ErrorCode::not_supported, "a time is not a finite number; use --decode raw");
  const __int128 ns = static_cast<__int128>(number) * step_ns;
  const __int128 shifted = ns + unit_ns / 2;
  return shifted / unit_ns - (shifted % unit_ns < 0 ? 1 : 0);
}

/// xarray computes in float64 but for float32 in units of seconds or less.
template <class S>
__int128 timedelta_of_number(const CfDecoding& cf, double number) {
  const bool stays_single = std::is_same_v<S, float> && cf.time_step <= cf.per_second;
  return stays_single ? timedelta_counts(cf, static_cast<float>(number))
                      : timedelta_counts(cf, number);
}

/// Nanoseconds since the reference date. xarray leaves those that 64 bits cannot hold to cftime.
__int128 datetime_counts(const CfDecoding& cf, double number) {
  const auto step = static_cast<double>(cf.time_step);
  if (!cf.is_by_cftime && std::fabs(std::trunc(number)) * step < 0x1p63)
    return static_cast<__int128>(number * step);
  if (const auto counts = cftime_nanoseconds(number, cf.time_step)) return *counts;
  throw Error(ErrorCode::not_supported, "a time is not a finite number; use --decode raw");
}

template <class S>
void run_time(const CfDecoding& cf, std::int64_t count, const std::byte* source,
              std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S stored = load<S>(source + i * source_stride);
    std::int64_t value = std::numeric_limits<std::int64_t>::min();  // NaT
    if constexpr (std::is_integral_v<S>) {
      bool missing = false;
      if constexpr (std::is_same_v<S, std::int64_t>)
        missing = stored == std::numeric_limits<S>::min();
      for (std::int64_t mask : cf.masked_counts)
        missing = missing || stored == static_cast<S>(mask);
      if (!missing) value = time_result(cf, static_cast<__int128>(stored) * cf.time_step);
    } else {
      double number = static_cast<double>(stored);
      for (double mask : cf.masked)
        if (static_cast<S>(mask) == stored) number = std::numeric_limits<double>::quiet_NaN();
      if (cf.has_scale) number *= cf.scale;
      if (cf.has_offset) number += cf.offset;
      if (cf.time == CfDecoding::Time::timedelta) {
        if (!std::isnan(number)) value = time_result(cf, timedelta_of_number<S>(cf, number));
      } else if (!std::isnan(number)) {
        value = time_result(cf, datetime_counts(cf, number));
      }
    }
    store(result + i * result_stride, value);
  }
}

template <class S>
void run_packed_time(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                     std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double number = static_cast<double>(load<S>(source + i * source_stride));
    run_time<double>(cf, 1, reinterpret_cast<const std::byte*>(&number), 8,
                     result + i * result_stride, 8);
  }
}

template <class T>
void run_complex(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                 std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto stored = load<std::complex<T>>(source + i * source_stride);
    const bool masked =
        std::any_of(cf.masked_complex.begin(), cf.masked_complex.end(), [stored](const auto& mask) {
          return stored ==
                 std::complex<T>(static_cast<T>(mask.real()), static_cast<T>(mask.imag()));
        });
    store(result + i * result_stride, masked ? std::complex<T>(kNan, kNan) : stored);
  }
}

/// Calls `body` with a value of the type's C++ type.
template <class Body>
auto with_type(const DataType& type, Body&& body) {
  switch (type.kind) {
    case Kind::signed_int:
      switch (type.itemsize) {
        case 1:
          return body(std::int8_t{});
        case 2:
          return body(std::int16_t{});
        case 4:
          return body(std::int32_t{});
        default:
          return body(std::int64_t{});
      }
    case Kind::unsigned_int:
      switch (type.itemsize) {
        case 1:
          return body(std::uint8_t{});
        case 2:
          return body(std::uint16_t{});
        case 4:
          return body(std::uint32_t{});
        default:
          return body(std::uint64_t{});
      }
    case Kind::floating:
      switch (type.itemsize) {
        case 2:
          return body(_Float16{});
        case 4:
          return body(float{});
        default:
          return body(double{});
      }
    case Kind::boolean:
      return body(std::uint8_t{});
    case Kind::datetime:
    case Kind::timedelta:
      return body(std::int64_t{});
    default:
      break;
  }
  throw Error(ErrorCode::not_supported, fmt::format("converting values of type {}", type.name()));
}

template <class Body>
auto with_float(const DataType& type, Body&& body) {
  switch (type.itemsize) {
    case 2:
      return body(_Float16{});
    case 4:
      return body(float{});
    default:
      return body(double{});
  }
}

/// The upper half of a float32, rounded to nearest even as torch and ml_dtypes round.
struct BFloat16 {
  std::uint16_t bits;

  explicit BFloat16(double value) {
    const auto single = static_cast<float>(value);
    std::uint32_t word;
    std::memcpy(&word, &single, sizeof word);
    const bool is_nan = (word & 0x7fffffff) > 0x7f800000;
    bits = is_nan ? 0x7fc0 : static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
};

/// Values that were decoded to float64: normalised, NaN replaced, cast.
template <class R>
void finish_block(std::int64_t count, const double* values, const double* subtract,
                  const double* divide, const double* nan_value, std::byte* result,
                  std::int64_t result_stride) {
  auto loop = [&](auto value_of, std::int64_t stride) {
    for (std::int64_t i = 0; i < count; ++i) {
      double value = value_of(values[i]);
      if (nan_value != nullptr) value = std::isnan(value) ? *nan_value : value;
      store(result + i * stride, R(value));
    }
  };
  auto loops = [&](auto value_of) {
    if (result_stride == sizeof(R))
      loop(value_of, sizeof(R));
    else
      loop(value_of, result_stride);
  };
  if (subtract == nullptr) return loops([](double value) { return value; });
  loops([less = *subtract, by = *divide](double value) { return (value - less) / by; });
}

}  // namespace

Converter::Converter(const CfDecoding& decoding, const DataType& result, Finish finish)
    : decoding_(decoding),
      result_(result),
      finish_(std::move(finish)),
      source_itemsize_(decoding.stored.itemsize),
      result_itemsize_(result.itemsize) {
  const bool casts = !(result == decoding.decoded);
  if (finish_.nothing() && (decoding.joined_characters > 0 || (decoding.is_identity() && !casts))) {
    is_copy_ = true;
    return;
  }
  const bool from_number = decoding.decoded.is_float() || decoding.decoded.is_integer();
  const bool to_blocks = !finish_.nothing() || result.kind == Kind::bfloat16;
  if ((casts || to_blocks) && !(result.is_float() && from_number &&
                                (decoding.decoded.is_float() || to_blocks || result == float64())))
    throw Error(ErrorCode::not_supported,
                fmt::format("casting {} to {}", decoding.decoded.name(), result.name()));
  if (to_blocks || (casts && decoding.decoded.is_integer())) {
    const bool scales_integers = decoding.decoded.is_integer() && decoding.has_scale;
    run_ = with_type(decoding.stored, [&](auto s) -> Run {
      if (scales_integers) return run_integer_scale_to_float<decltype(s)>;
      if (decoding.decoded.is_integer()) return run_numeric<decltype(s), double, double>;
      return with_float(decoding.arithmetic, [](auto a) -> Run {
        return run_numeric<decltype(s), decltype(a), double>;
      });
    });
    if (to_blocks)
      cast_ = result.kind == Kind::bfloat16
                  ? finish_block<BFloat16>
                  : with_float(result, [](auto r) -> Cast { return finish_block<decltype(r)>; });
    return;
  }
  const bool packed = decoding.has_scale || decoding.has_offset;
  if (decoding.stored.kind == Kind::complex) {
    run_ = decoding.stored.itemsize == 8 ? run_complex<float> : run_complex<double>;
  } else if (decoding.to_bool) {
    run_ = with_type(decoding.stored, [](auto s) -> Run { return run_bool<decltype(s)>; });
  } else if (decoding.time != CfDecoding::Time::none) {
    run_ = with_type(decoding.stored, [&](auto s) -> Run {
      return packed ? run_packed_time<decltype(s)> : run_time<decltype(s)>;
    });
  } else if (decoding.arithmetic.is_integer()) {
    run_ = with_type(decoding.stored, [](auto s) -> Run { return run_integer_scale<decltype(s)>; });
  } else {
    run_ = with_type(decoding.stored, [&](auto s) {
      return with_float(decoding.arithmetic, [&](auto a) {
        return with_float(result, [](auto r) -> Run {
          return run_numeric<decltype(s), decltype(a), decltype(r)>;
        });
      });
    });
  }
}

void Converter::convert(const Dims& shape, const std::byte* source, const Dims& source_strides,
                        std::byte* result, const Dims& result_strides, const Dims& origin) const {
  if (is_copy_) {
    if (source != result)
      copy_strided(shape, source_itemsize_, source, source_strides, result, result_strides);
    return;
  }
  if (by_position()) {
    // Each position of the dimensions that have numbers of their own by itself.
    const Dims& entries = finish_.normalization->strides;
    Dims inner = shape, varying;
    std::int64_t entry = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0) return;
      if (entries[d] == 0) continue;
      inner[d] = 1;
      varying.push_back(static_cast<std::int64_t>(d));
      entry += origin[d] * entries[d];
    }
    Dims at(varying.size());
    for (;;) {
      convert_in_blocks(inner, source, source_strides, result, result_strides, entry);
      std::size_t v = varying.size();
      for (; v > 0; --v) {
        const auto d = static_cast<std::size_t>(varying[v - 1]);
        entry += entries[d];
        source += source_strides[d];
        result += result_strides[d];
        if (++at[v - 1] < shape[d]) break;
        at[v - 1] = 0;
        entry -= shape[d] * entries[d];
        source -= shape[d] * source_strides[d];
        result -= shape[d] * result_strides[d];
      }
      if (v == 0) return;
    }
  }
  if (cast_ != nullptr)
    return convert_in_blocks(shape, source, source_strides, result, result_strides, 0);
  for_each_run(
      shape, static_cast<std::int64_t>(source_itemsize_), source_strides,
      static_cast<std::int64_t>(result_itemsize_), result_strides,
      [&](std::int64_t count, std::int64_t from, std::int64_t from_stride, std::int64_t to,
          std::int64_t to_stride) {
        run_(decoding_, count, source + from, from_stride, result + to, to_stride);
      },
      source);
}

void Converter::convert_in_blocks(const Dims& shape, const std::byte* source,
                                  const Dims& source_strides, std::byte* result,
                                  const Dims& result_strides, std::int64_t entry) const {
  constexpr std::int64_t kBlock = 512;  // float64 values that stay in the first-level cache
  const Normalization* normalization = finish_.normalization.get();
  const double* subtract = normalization ? normalization->subtract.data() + entry : nullptr;
  const double* divide = normalization ? normalization->divide.data() + entry : nullptr;
  const double* nan_value = finish_.nan_value ? &*finish_.nan_value : nullptr;
  for_each_run(
      shape, static_cast<std::int64_t>(source_itemsize_), source_strides,
      static_cast<std::int64_t>(result_itemsize_), result_strides,
      [&](std::int64_t count, std::int64_t from, std::int64_t from_stride, std::int64_t to,
          std::int64_t to_stride) {
        double block[kBlock];
        for (std::int64_t i = 0; i < count; i += kBlock) {
          const std::int64_t n = std::min(kBlock, count - i);
          run_(decoding_, n, source + from + i * from_stride, from_stride,
               reinterpret_cast<std::byte*>(block), sizeof(double));
          if (normalization != nullptr && normalization->log_scale)
            take_logarithms(block, n, *normalization->log_scale);
          cast_(n, block, subtract, divide, nan_value, result + to + i * to_stride, to_stride);
        }
      },
      source);
}

}  // namespace batchfs
