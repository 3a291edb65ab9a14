#pragma once
// How the reads of a part's chunks are divided among tasks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/program/program_part.h"

namespace batchfs::gpu {

/// Bytes of a chunk that one read puts into staging memory.
struct StagedPiece {
  std::size_t chunk;  // its number among the part's
  std::uint64_t offset, size;
};

/// One list for each task, at least one: reads are split and merged to about 4 MiB.
std::vector<std::vector<StagedPiece>> staged_pieces(std::span<const StagedChunk> chunks);

}  // namespace batchfs::gpu
