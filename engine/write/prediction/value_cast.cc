#include "engine/write/prediction/value_cast.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace batchfs {

namespace {

struct BFloat16 {
  std::uint16_t bits;
};

template <class T>
auto number_at(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  if constexpr (std::is_same_v<T, BFloat16>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
  else
    return value;
}

template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != From{};
  else if constexpr (std::is_same_v<To, _Float16> && std::is_integral_v<From>)
    return static_cast<To>(static_cast<float>(value));  // as numpy does
  else
    return static_cast<To>(value);
}

template <class From, class To>
void copy_row(std::int64_t count, const std::byte* source, std::int64_t stride, const CastScale&,
              std::byte* result) {
  if constexpr (std::is_same_v<From, To>) {
    if (stride == static_cast<std::int64_t>(sizeof(From))) {
      std::memcpy(result, source, static_cast<std::size_t>(count) * sizeof(From));
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i, source += stride, result += sizeof(To)) {
    const To value = cast<To>(number_at<From>(source));
    std::memcpy(result, &value, sizeof value);
  }
}

template <class From, class To>
void scale_row(std::int64_t count, const std::byte* source, std::int64_t stride,
               const CastScale& scale, std::byte* result) {
  using Value = decltype(number_at<From>(source));
  using Wide = std::conditional_t<std::is_same_v<Value, float> || std::is_same_v<Value, _Float16>,
                                  float, double>;
  for (std::int64_t i = 0; i < count; ++i, source += stride, result += sizeof(To)) {
    const auto wide = static_cast<Wide>(number_at<From>(source));
    const auto multiply = static_cast<Wide>(scale.multiply[i * scale.stride]);
    const auto add = static_cast<Wide>(scale.add[i * scale.stride]);
    const To value = cast<To>(wide * multiply + add);
    std::memcpy(result, &value, sizeof value);
  }
}

template <class From, class To>
CastRow row_of(bool is_scaled) {
  return is_scaled ? scale_row<From, To> : copy_row<From, To>;
}

[[noreturn]] void refuse(const DataType& type) {
  throw Error(
      ErrorCode::not_supported,
      fmt::format("values of the type {} are not numbers that predictions can have", type.name()));
}

/// Calls `run` with a value of the type, with which it begins.
template <class Run>
CastRow with_type(const DataType& type, Run&& run) {
  switch (type.kind) {
    case Kind::boolean:
      return run(std::uint8_t{});
    case Kind::signed_int:
      if (type.itemsize == 1) return run(std::int8_t{});
      if (type.itemsize == 2) return run(std::int16_t{});
      if (type.itemsize == 4) return run(std::int32_t{});
      if (type.itemsize == 8) return run(std::int64_t{});
      break;
    case Kind::unsigned_int:
      if (type.itemsize == 1) return run(std::uint8_t{});
      if (type.itemsize == 2) return run(std::uint16_t{});
      if (type.itemsize == 4) return run(std::uint32_t{});
      if (type.itemsize == 8) return run(std::uint64_t{});
      break;
    case Kind::floating:
      if (type.itemsize == 2) return run(_Float16{});
      if (type.itemsize == 4) return run(float{});
      if (type.itemsize == 8) return run(double{});
      break;
    case Kind::bfloat16:
      return run(BFloat16{});
    default:
      break;
  }
  refuse(type);
}

/// numpy's order of kinds: a cast goes up, or stays.
int rank_of(const DataType& type) {
  switch (type.kind) {
    case Kind::boolean:
      return 0;
    case Kind::unsigned_int:
      return 1;
    case Kind::signed_int:
      return 2;
    case Kind::floating:
    case Kind::bfloat16:
      return 3;
    default:
      return -1;
  }
}

}  // namespace

bool can_cast(const DataType& from, const DataType& to) {
  return rank_of(from) >= 0 && rank_of(from) <= rank_of(to);
}

CastRow cast_row(const DataType& from, const DataType& to, bool is_scaled) {
  return with_type(from, [&](auto a) {
    using From = decltype(a);
    return with_type(to, [&](auto b) -> CastRow {
      using To = decltype(b);
      if constexpr (std::is_same_v<To, BFloat16>)
        refuse(to);
      else
        return row_of<From, To>(is_scaled);
    });
  });
}

}  // namespace batchfs
