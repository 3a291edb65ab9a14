#include "engine/view/plan/batch_chunks.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/view/walked_views.h"

namespace batchfs {
namespace batch_chunks_test {

using namespace walked_views;

TEST(BatchChunks, AreEachNamedOnce) {
  const MemoryData of = data();
  const auto dataset = of.dataset();
  for (const char* json : kViews) {
    const auto view = parse_view(dataset, json);
    const std::int64_t batch = view->batches() - 1;
    Chunks named;
    const std::int64_t boxes = for_each_chunk(
        *view, 0, batch,
        [&](std::uint32_t variable, std::int64_t chunk) { named.emplace_back(variable, chunk); });
    EXPECT_EQ(named, planned(*view, 0, batch)) << json;
    EXPECT_GE(boxes, std::ssize(named));
  }
}

}  // namespace batch_chunks_test
}  // namespace batchfs
