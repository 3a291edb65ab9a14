#pragma once
// Helpers of the filters that see bytes as numbers of a type that their configuration names.

#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "engine/codec/codec.h"

namespace batchfs {

/// The type itself when it is one that filters compute with; `where` is the configuration, for the
/// message.
inline const DataType& check_number(const DataType& type, const JsonRef& where) {
  if (!type.is_integer() && !type.is_float() && type.kind != Kind::boolean)
    throw where.error(fmt::format("filters of the data type {} are not supported", type.name()),
                      ErrorCode::not_supported);
  return type;
}

/// The numpy type under `key`; `otherwise` when it is absent.
inline DataType configured_type(const JsonRef& configuration, const char* key,
                                const DataType& otherwise, const ChunkLayout& layout) {
  const auto name = configuration.find(key);
  if (!name || name->is_null()) return check_number(otherwise, configuration);
  const std::string text = name->string();
  DataType type;
  try {
    type = parse_numpy_type(text);
  } catch (const Error& error) {
    throw name->error(error.why(), error.code());
  }
  // zarr-python does not read such v3 chunks as it wrote them: their meaning is ambiguous.
  if (type.big_endian && !layout.serialized)
    throw name->error("big-endian types in filters of Zarr v3 are not supported",
                      ErrorCode::not_supported);
  return check_number(type, *name);
}

/// Calls `body` with a value of the type's C++ type.
template <class Body>
auto with_number(const DataType& type, Body&& body) {
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
    case Kind::boolean:
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
    default:
      switch (type.itemsize) {
        case 2:
          return body(_Float16{});
        case 4:
          return body(float{});
        default:
          return body(double{});
      }
  }
}

/// One number in the byte order of its type.
template <class T>
T read_number(const std::byte* p, bool big_endian) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, p, sizeof(T));
  if (big_endian)
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void write_number(std::byte* p, T value, bool big_endian) {
  std::memcpy(p, &value, sizeof value);
  if (big_endian)
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(p[i], p[sizeof(T) - 1 - i]);
}

/// For messages.
template <class T>
auto printable_number(T value) {
  if constexpr (std::is_same_v<T, _Float16>)
    return static_cast<float>(value);
  else
    return value;
}

/// numpy's astype on x86-64: integers wrap. A float goes to a small integer by way of int32, to
/// others by way of int64; where it does not fit these, they are at their minimum.
template <class To, class From>
To cast_number(From value) {
  if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const auto wide = static_cast<double>(value);
    if constexpr (std::is_same_v<To, std::uint64_t>)
      if (wide >= 0x1p63 && wide < 0x1p64) return static_cast<To>(wide);
    if constexpr (sizeof(To) < 4 || std::is_same_v<To, std::int32_t>)
      if (!(wide > -0x1p31 - 1 && wide < 0x1p31)) return static_cast<To>(INT32_MIN);
    if (!(wide >= -0x1p63 && wide < 0x1p63)) return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<std::int64_t>(wide));
  } else {
    return static_cast<To>(value);
  }
}

/// Decoding of `in`, elements of `from`, to `out`, elements of `to`, by `convert(stored) -> value`,
/// called in order. Returns the bytes written.
template <class Convert>
std::size_t convert_elements(std::span<const std::byte> in, const DataType& from,
                             std::span<std::byte> out, const DataType& to, Convert&& convert) {
  if (in.size() % from.itemsize != 0)
    throw Error(ErrorCode::corrupt, fmt::format("{} bytes are not a whole number of {} elements",
                                                in.size(), from.name()));
  const std::size_t count = in.size() / from.itemsize;
  if (count > out.size() / to.itemsize)
    throw Error(ErrorCode::corrupt, fmt::format("the filter has {} elements, {} were expected",
                                                count, out.size() / to.itemsize));
  with_number(from, [&](auto f) {
    with_number(to, [&](auto t) {
      for (std::size_t i = 0; i < count; ++i)
        write_number<decltype(t)>(
            out.data() + i * to.itemsize,
            convert(read_number<decltype(f)>(in.data() + i * from.itemsize, from.big_endian), t),
            to.big_endian);
    });
  });
  return count * to.itemsize;
}

/// A filter between two types: sizes follow from the item sizes.
class TypedCodec : public Codec {
 public:
  TypedCodec(DataType decoded, DataType encoded)
      : decoded_(std::move(decoded)), encoded_(std::move(encoded)) {}
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded / decoded_.itemsize * encoded_.itemsize;
  }

 protected:
  const DataType decoded_, encoded_;
};

}  // namespace batchfs
