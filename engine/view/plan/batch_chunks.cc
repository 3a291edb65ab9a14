#include "engine/view/plan/batch_chunks.h"

#include <vector>

#include "engine/view/plan/batch_planner.h"
#include "engine/view/plan/chunk_set.h"

namespace batchfs {

std::int64_t for_each_chunk(const View& view, std::int64_t epoch, std::int64_t batch,
                            const UseChunk& use) {
  std::vector<ChunkSet> met;
  for (const Variable* variable : view.variables())
    met.emplace_back(variable->array->grid().chunk_count());
  const auto reserve = [](std::uint64_t) { return nullptr; };
  std::int64_t boxes = 0;
  for (ChunkWalk& walk : chunk_walks(view, epoch, batch))
    while (const auto chunk = walk.next()) {
      ++boxes;
      if (met[chunk->variable].insert(chunk->chunk, reserve)) use(chunk->variable, chunk->chunk);
    }
  return boxes;
}

}  // namespace batchfs
