#pragma once
// How much memory of freed buffers is kept for the next ones.

#include <cstddef>

namespace batchfs {

/// None is where AddressSanitizer watches: it knows what malloc gives, and when it is freed.
#if defined(__SANITIZE_ADDRESS__)  // of g++
inline constexpr bool kPoolsBuffers = false;
#elif defined(__has_feature)  // of clang
inline constexpr bool kPoolsBuffers = !__has_feature(address_sanitizer);
#else
inline constexpr bool kPoolsBuffers = true;
#endif

/// At least this much is, unless more is asked for. Part of what a process takes beside its memory
/// budget.
inline constexpr std::size_t kLeastPooled = 16 << 20;

/// Of the whole process. As many chunks as are on their way from a store at once should fit: each that does not costs the
/// page faults and the clearing of fresh memory.
void keep_pooled(std::size_t bytes);

}  // namespace batchfs
