#pragma once
// Numbers as zip archives and the cache's files hold them.

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace batchfs {

/// The number at `bytes[offset]`; the caller has checked that it is inside.
template <class T>
T little_endian(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace batchfs
