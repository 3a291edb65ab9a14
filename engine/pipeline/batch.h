#pragma once
// A finished batch.

#include <memory>
#include <vector>

#include "engine/base/budget.h"
#include "engine/pipeline/memory_file.h"

namespace batchfs {

/// Immutable once handed out; its memory is counted for as long as someone holds it.
struct Batch {
  std::vector<MemoryFile> files;  // as BatchLayout::files
  Budget::Reservation reservation;
  std::shared_ptr<const void> view;  // the assembling view is kept as long as its memory

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const MemoryFile& file : files) sum += file.size();
    return sum;
  }
};

}  // namespace batchfs
