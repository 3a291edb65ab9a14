#include "gpu/program/staged_pieces.h"

namespace batchfs::gpu {

std::vector<std::vector<StagedPiece>> staged_pieces(std::span<const StagedChunk> chunks) {
  constexpr std::uint64_t kPiece = 4 << 20;
  std::vector<std::vector<StagedPiece>> tasks(1);
  std::uint64_t collected = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const StagedChunk& staged = chunks[i];
    const bool divides = staged.way != StagedChunk::Way::cpu && staged.stored;
    for (std::uint64_t at = 0; at < staged.size;) {
      // Avoids a piece that is much smaller than the others.
      const std::uint64_t left = staged.size - at;
      const std::uint64_t size = divides && left > kPiece + kPiece / 2 ? kPiece : left;
      if (collected + size > kPiece + kPiece / 2 && collected > 0) {
        tasks.emplace_back();
        collected = 0;
      }
      tasks.back().push_back({i, at, size});
      collected += size;
      at += size;
    }
  }
  return tasks;
}

}  // namespace batchfs::gpu
