#include "fs/formats/element_number.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace batchfs {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

double real_number(std::uint32_t itemsize, const std::byte* data) {
  if (itemsize == 2) return static_cast<double>(load<_Float16>(data));
  return itemsize == 4 ? static_cast<double>(load<float>(data)) : load<double>(data);
}

}  // namespace

bool has_number(const DataType& type) {
  switch (type.kind) {
    case Kind::boolean:
    case Kind::unsigned_int:
    case Kind::signed_int:
    case Kind::datetime:
    case Kind::timedelta:
    case Kind::bfloat16:
    case Kind::complex:
    case Kind::floating:
      return true;
    default:
      return false;
  }
}

double element_number(const DataType& type, const std::byte* data) {
  switch (type.kind) {
    case Kind::boolean:
      return load<std::uint8_t>(data) != 0 ? 1 : 0;
    case Kind::unsigned_int:
      switch (type.itemsize) {
        case 1:
          return load<std::uint8_t>(data);
        case 2:
          return load<std::uint16_t>(data);
        case 4:
          return load<std::uint32_t>(data);
        default:
          return static_cast<double>(load<std::uint64_t>(data));
      }
    case Kind::signed_int:
      switch (type.itemsize) {
        case 1:
          return load<std::int8_t>(data);
        case 2:
          return load<std::int16_t>(data);
        case 4:
          return load<std::int32_t>(data);
        default:
          return static_cast<double>(load<std::int64_t>(data));
      }
    case Kind::datetime:
    case Kind::timedelta: {
      const auto count = load<std::int64_t>(data);
      return count == std::numeric_limits<std::int64_t>::min() ? kNaN : static_cast<double>(count);
    }
    case Kind::bfloat16: {
      const std::uint32_t bits = std::uint32_t{load<std::uint16_t>(data)} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case Kind::complex: {
      const std::uint32_t half = type.itemsize / 2;
      return std::hypot(real_number(half, data), real_number(half, data + half));
    }
    default:
      return real_number(type.itemsize, data);
  }
}

}  // namespace batchfs
