#pragma once
// How much memory of freed buffers is kept for the next ones.

#include <cstddef>

#include "engine/base/sanitizers.h"

namespace batchfs {

/// Pooling is disabled under AddressSanitizer, which tracks malloc and free.
inline constexpr bool kPoolsBuffers = !BATCHFS_ADDRESS_SANITIZER;

/// The minimum kept, and the limit until keep_pooled() is called. Part of the memory that a process
/// takes beside its memory budget; pooled bytes beyond it are part of the budget.
inline constexpr std::size_t kMinPooled = 16 << 20;

/// The memory that a Buffer of this many bytes takes, once all of them are written.
std::size_t buffer_memory(std::size_t size);

/// Sets how many bytes the whole process keeps: for programs, not for libraries. All chunks in
/// flight from a store should fit: each that does not fit costs the page faults and the clearing of
/// fresh memory.
void keep_pooled(std::size_t bytes);

}  // namespace batchfs
