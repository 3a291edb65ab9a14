#include "engine/dataset/converter.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

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

/// Stored S -> arithmetic A (mask, scale, offset) -> result R.
template <class S, class A, class R>
void run_numeric(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                 std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  const auto scale = static_cast<A>(cf.scale), offset = static_cast<A>(cf.offset);
  const bool has_scale = cf.has_scale, has_offset = cf.has_offset;
  const std::size_t masks = cf.masked.size();
  const A missing = std::numeric_limits<double>::quiet_NaN();
  const A first_mask = masks > 0 ? static_cast<A>(cf.masked[0]) : A{};
  auto loop = [&](std::int64_t from_stride, std::int64_t to_stride) {
    for (std::int64_t i = 0; i < count; ++i) {
      A value = static_cast<A>(load<S>(source + i * from_stride));
      if (masks == 1) {
        value = value == first_mask ? missing : value;
      } else if (masks > 1) {
        const A stored = value;
        for (double mask : cf.masked)
          if (stored == static_cast<A>(mask)) value = missing;
      }
      if (has_scale) value = static_cast<A>(static_cast<Compute<A>>(value) * static_cast<Compute<A>>(scale));
      if (has_offset) value = static_cast<A>(static_cast<Compute<A>>(value) + static_cast<Compute<A>>(offset));
      store(result + i * to_stride, static_cast<R>(value));
    }
  };
  // Constant strides let the compiler vectorise the common case.
  if (source_stride == sizeof(S) && result_stride == sizeof(R)) loop(sizeof(S), sizeof(R));
  else loop(source_stride, result_stride);
}

/// xarray's integer scale without offset: integers stay integers.
template <class S>
void run_integer_scale(const CfDecoding& cf, std::int64_t count, const std::byte* source,
                       std::int64_t source_stride, std::byte* result, std::int64_t result_stride) {
  const auto scale = static_cast<std::uint64_t>(static_cast<std::int64_t>(cf.scale));
  for (std::int64_t i = 0; i < count; ++i)
    store(result + i * result_stride,
          static_cast<std::int64_t>(
              static_cast<std::uint64_t>(static_cast<std::int64_t>(load<S>(source + i * source_stride))) * scale));
}

template <class S>
void run_bool(const CfDecoding&, std::int64_t count, const std::byte* source, std::int64_t source_stride,
              std::byte* result, std::int64_t result_stride) {
  for (std::int64_t i = 0; i < count; ++i)
    store(result + i * result_stride, static_cast<std::uint8_t>(load<S>(source + i * source_stride) != S{}));
}

/// Counts since the reference date in counts of the result's unit. Throws when they do not fit.
std::int64_t time_result(const CfDecoding& cf, __int128 counts) {
  __int128 value = counts;
  if (cf.time == CfDecoding::Time::datetime)
    value += static_cast<__int128>(cf.origin_seconds) * cf.per_second + cf.origin_rest;
  if (value > INT64_MAX || value <= INT64_MIN)
    throw Error(ErrorCode::not_supported,
                "a time lies outside of what datetime64[ns] holds (1677 to 2262); use --decode raw");
  return static_cast<std::int64_t>(value);
}

template <class S>
void run_time(const CfDecoding& cf, std::int64_t count, const std::byte* source, std::int64_t source_stride,
              std::byte* result, std::int64_t result_stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S stored = load<S>(source + i * source_stride);
    std::int64_t value = std::numeric_limits<std::int64_t>::min();  // NaT
    if constexpr (std::is_integral_v<S>) {
      bool missing = false;
      if constexpr (std::is_same_v<S, std::int64_t>) missing = stored == std::numeric_limits<S>::min();
      for (std::int64_t mask : cf.masked_counts) missing = missing || stored == static_cast<S>(mask);
      if (!missing) value = time_result(cf, static_cast<__int128>(stored) * cf.time_step);
    } else {
      double number = static_cast<double>(stored);
      for (double mask : cf.masked)
        if (static_cast<S>(mask) == stored) number = std::numeric_limits<double>::quiet_NaN();
      if (cf.has_scale) number *= cf.scale;
      if (cf.has_offset) number += cf.offset;
      number *= static_cast<double>(cf.time_step);
      if (!std::isnan(number)) {
        if (!(std::fabs(number) < 1e30))
          throw Error(ErrorCode::not_supported, "a time is not a finite number; use --decode raw");
        value = time_result(cf, static_cast<__int128>(number));
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
    run_time<double>(cf, 1, reinterpret_cast<const std::byte*>(&number), 8, result + i * result_stride, 8);
  }
}

/// Calls `body` with a value of the type's C++ type.
template <class Body>
auto with_type(const DataType& type, Body&& body) {
  switch (type.kind) {
    case Kind::signed_int:
      switch (type.itemsize) {
        case 1: return body(std::int8_t{});
        case 2: return body(std::int16_t{});
        case 4: return body(std::int32_t{});
        default: return body(std::int64_t{});
      }
    case Kind::unsigned_int:
      switch (type.itemsize) {
        case 1: return body(std::uint8_t{});
        case 2: return body(std::uint16_t{});
        case 4: return body(std::uint32_t{});
        default: return body(std::uint64_t{});
      }
    case Kind::floating:
      switch (type.itemsize) {
        case 2: return body(_Float16{});
        case 4: return body(float{});
        default: return body(double{});
      }
    case Kind::boolean: return body(std::uint8_t{});
    case Kind::datetime: case Kind::timedelta: return body(std::int64_t{});
    default: break;
  }
  throw Error(ErrorCode::not_supported, fmt::format("converting values of type {}", type.name()));
}

template <class Body>
auto with_float(const DataType& type, Body&& body) {
  switch (type.itemsize) {
    case 2: return body(_Float16{});
    case 4: return body(float{});
    default: return body(double{});
  }
}

}  // namespace

Converter::Converter(const CfDecoding& decoding, const DataType& result)
    : decoding_(decoding),
      source_itemsize_(decoding.stored.itemsize),
      result_itemsize_(result.itemsize) {
  const bool casts = !(result == decoding.decoded);
  if (decoding.joined_characters > 0 || (decoding.is_identity() && !casts)) {
    is_copy_ = true;
    return;
  }
  if (casts && !(result.is_float() && decoding.decoded.is_float()))
    throw Error(ErrorCode::not_supported,
                fmt::format("casting {} to {}", decoding.decoded.name(), result.name()));
  const bool packed = decoding.has_scale || decoding.has_offset;
  if (decoding.to_bool) {
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
        return with_float(result, [](auto r) -> Run { return run_numeric<decltype(s), decltype(a), decltype(r)>; });
      });
    });
  }
}

void Converter::convert(const Dims& shape, const std::byte* source, const Dims& source_strides,
                        std::byte* result, const Dims& result_strides) const {
  if (is_copy_) {
    if (source != result) copy_strided(shape, source_itemsize_, source, source_strides, result, result_strides);
    return;
  }
  for_each_run(shape, static_cast<std::int64_t>(source_itemsize_), source_strides,
               static_cast<std::int64_t>(result_itemsize_), result_strides,
               [&](std::int64_t count, std::int64_t from, std::int64_t from_stride, std::int64_t to,
                   std::int64_t to_stride) {
                 run_(decoding_, count, source + from, from_stride, result + to, to_stride);
               });
}

}  // namespace batchfs
