// The byte order of values.

#include <utility>

#include "engine/zarr/data_type.h"

namespace batchfs {

void set_byte_order(DataType& type, bool big_endian) {
  const bool one_byte = type.itemsize == 1 && type.kind != Kind::unicode;
  type.big_endian = big_endian && !one_byte && type.kind != Kind::structured;
  for (Field& field : type.fields) set_byte_order(field.type, big_endian);
}

void swap_bytes(const DataType& type, std::byte* data, std::size_t elements) {
  auto swap_words = [](std::byte* p, std::size_t words, std::size_t size) {
    switch (size) {
      case 2:
        for (std::size_t i = 0; i < words; ++i) std::swap(p[2 * i], p[2 * i + 1]);
        return;
      case 4:
        for (std::size_t i = 0; i < words; ++i) {
          std::uint32_t v;
          __builtin_memcpy(&v, p + 4 * i, 4);
          v = __builtin_bswap32(v);
          __builtin_memcpy(p + 4 * i, &v, 4);
        }
        return;
      case 8:
        for (std::size_t i = 0; i < words; ++i) {
          std::uint64_t v;
          __builtin_memcpy(&v, p + 8 * i, 8);
          v = __builtin_bswap64(v);
          __builtin_memcpy(p + 8 * i, &v, 8);
        }
        return;
      default:
        return;
    }
  };
  switch (type.kind) {
    case Kind::bytes:
    case Kind::raw:
    case Kind::boolean:
      return;
    case Kind::unicode:
      return swap_words(data, elements * (type.itemsize / 4), 4);
    case Kind::complex:
      return swap_words(data, elements * 2, type.itemsize / 2);
    case Kind::structured:
      for (std::size_t i = 0; i < elements; ++i)
        for (const Field& field : type.fields) {
          if (!field.type.big_endian && field.type.kind != Kind::structured) continue;
          std::size_t count = 1;
          for (std::int64_t n : field.shape) count *= static_cast<std::size_t>(n);
          swap_bytes(field.type, data + i * type.itemsize + field.offset, count);
        }
      return;
    default:
      return swap_words(data, elements, type.itemsize);
  }
}

}  // namespace batchfs
