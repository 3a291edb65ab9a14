#pragma once
// Ranges of an object that several callers want: which request serves them, and where in its answer
// each one's bytes are.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/store/store.h"

namespace batchfs {

/// Ranges of an object of this length and more have requests of their own.
inline constexpr std::uint64_t kMaxSharedRange = 8 << 20;

/// Does a request for `outer` return the bytes of `inner`?
bool covers(const ByteRange& outer, const ByteRange& inner);

/// Widens a range, of which `wanted` bytes are wanted, so that it holds `other` as well. False
/// where two requests, which come in parallel, are better.
bool widen(ByteRange& range, std::uint64_t& wanted, const ByteRange& other);

/// Where in the `size` bytes that came for `outer` the bytes of `inner` are: first and count.
std::pair<std::size_t, std::size_t> slice(const ByteRange& outer, const ByteRange& inner,
                                          std::size_t size);

}  // namespace batchfs
