#include "engine/view/plan/chunk_walk.h"

#include <set>

#include <gtest/gtest.h>

#include "engine/view/plan/batch_planner.h"
#include "tests/unit/engine/view/walked_views.h"

namespace batchfs {
namespace chunk_walk_test {

using namespace walked_views;

TEST(ChunkWalk, MeetsTheChunksOfThePlanInItsOrder) {
  const MemoryData of = data();
  const auto dataset = of.dataset();
  for (const char* json : kViews) {
    const auto view = parse_view(dataset, json);
    for (std::int64_t batch = 0; batch < view->batches(); ++batch) {
      Chunks met;
      std::set<Chunks::value_type> known;
      for (ChunkWalk& walk : chunk_walks(*view, 1, batch))
        while (const auto chunk = walk.next())
          if (known.emplace(chunk->variable, chunk->chunk).second)
            met.emplace_back(chunk->variable, chunk->chunk);
      EXPECT_EQ(met, planned(*view, 1, batch)) << json << " batch " << batch;
    }
  }
}

TEST(ChunkWalk, TakesTheElementsOfThePlan) {
  const MemoryData of = data();
  const auto dataset = of.dataset();
  for (const char* json : kViews) {
    const auto view = parse_view(dataset, json);
    const BatchPlan plan = view->plan(0, 0);
    using Element = std::pair<Chunks::value_type, std::vector<std::int64_t>>;
    std::set<Element> expected, met;
    const auto add = [](std::set<Element>& to, Chunks::value_type chunk, const Box& box) {
      for (std::int64_t n = 0; n < box.elements(); ++n) {
        std::vector<std::int64_t> at(box.shape.size());
        std::int64_t rest = n;
        for (std::size_t d = at.size(); d-- > 0; rest /= box.shape[d])
          at[d] = box.start[d] + rest % box.shape[d];
        to.emplace(chunk, at);
      }
    };
    for (const ChunkUse& use : plan.chunks)
      for (std::uint32_t p = 0; p < use.part_count; ++p)
        add(expected, {use.variable, use.chunk}, plan.parts[use.first_part + p].source);
    for (ChunkWalk& walk : chunk_walks(*view, 0, 0))
      while (const auto chunk = walk.next()) add(met, {chunk->variable, chunk->chunk}, chunk->box);
    EXPECT_EQ(met, expected) << json;
  }
}

}  // namespace chunk_walk_test
}  // namespace batchfs
