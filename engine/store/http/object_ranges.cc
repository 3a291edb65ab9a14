#include "engine/store/http/object_ranges.h"

#include <algorithm>

namespace batchfs {

namespace {

/// The time of a request is worth this many unwanted bytes.
constexpr std::uint64_t kWidestGap = 256 << 10;

std::uint64_t end_of(const ByteRange& range) {
  return range.length > UINT64_MAX - range.offset ? UINT64_MAX : range.offset + range.length;
}

}  // namespace

bool covers(const ByteRange& outer, const ByteRange& inner) {
  if (outer.is_whole()) return true;
  if (outer.from_end || inner.from_end)
    return outer.from_end && inner.from_end && inner.length <= outer.length;
  return outer.offset <= inner.offset && end_of(inner) <= end_of(outer);
}

bool widen(ByteRange& range, std::uint64_t& wanted, const ByteRange& other) {
  if (range.from_end || other.from_end || other.length >= kMaxSharedRange) return false;
  const std::uint64_t begin = std::min(range.offset, other.offset);
  const std::uint64_t end = std::max(end_of(range), end_of(other));
  const std::uint64_t gap = other.offset > end_of(range)   ? other.offset - end_of(range)
                            : range.offset > end_of(other) ? range.offset - end_of(other)
                                                           : 0;
  if (gap > kWidestGap || end - begin > kMaxSharedRange ||
      end - begin > 2 * (wanted + other.length))
    return false;
  range.offset = begin;
  range.length = end - begin;
  wanted += other.length;
  return true;
}

std::pair<std::size_t, std::size_t> slice(const ByteRange& outer, const ByteRange& inner,
                                          std::size_t size) {
  if (inner.from_end) {
    const std::size_t length = std::min<std::uint64_t>(inner.length, size);
    return {size - length, length};
  }
  const std::size_t begin = std::min<std::uint64_t>(inner.offset - outer.offset, size);
  return {begin, std::min<std::uint64_t>(inner.length, size - begin)};
}

}  // namespace batchfs
