#pragma once
// Ranges of an object that share a request: which one holds which, and where.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/store/store.h"

namespace batchfs {

inline std::uint64_t end_of(const ByteRange& range) {
  return range.length > UINT64_MAX - range.offset ? UINT64_MAX : range.offset + range.length;
}

/// Are the bytes of `inner` in what a request for `outer` gives?
inline bool covers(const ByteRange& outer, const ByteRange& inner) {
  if (outer.is_whole()) return true;
  if (outer.from_end || inner.from_end)
    return outer.from_end && inner.from_end && inner.length <= outer.length;
  return outer.offset <= inner.offset && end_of(inner) <= end_of(outer);
}

/// Where in the `size` bytes that came for `outer` the bytes of `inner` are: first and count.
inline std::pair<std::size_t, std::size_t> slice(const ByteRange& outer, const ByteRange& inner,
                                                 std::size_t size) {
  if (inner.from_end) {
    const std::size_t length = std::min<std::uint64_t>(inner.length, size);
    return {size - length, length};
  }
  const std::size_t begin = std::min<std::uint64_t>(inner.offset - outer.offset, size);
  return {begin, std::min<std::uint64_t>(inner.length, size - begin)};
}

}  // namespace batchfs
