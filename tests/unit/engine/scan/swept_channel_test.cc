#include "engine/scan/swept_channel.h"

#include <gmock/gmock.h>

#include "engine/view/list/sample_starts.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace swept_channel_test {

using testing::ElementsAre;

std::vector<std::int64_t> list(const Positions& positions) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < positions.size(); ++i) result.push_back(positions[i]);
  return result;
}

// FakeData(4, 3, 5): "v" (time 12, x 5).

TEST(SweptChannel, OfAVariableAndAChannelOfItAreAlongTheSamePositions) {
  const FakeData data(4, 3, 5);
  const auto view = data.view(R"({"window": {"time": {"size": 2, "stride": 2}},
      "select": {"x": ["#4", "#1"]}, "samples": {"where": {"time": {"from": "#6"}}},
      "tensors": {"a": {"variables": [{"make": "sum", "of": ["v", "v"]}]}}})");
  const StartTable starts = sample_starts(scan_of(*view), *data.dataset);
  const SweptChannel stored = swept_variable(*view, 0, &starts),
                     made = swept_made(*view, 0, starts);
  EXPECT_EQ(stored.name, "v");
  EXPECT_EQ(made.name, "sum");
  for (const SweptChannel& channel : {stored, made}) {
    EXPECT_THAT(channel.dims, ElementsAre("time", "x"));
    EXPECT_EQ(channel.selected[0].size(), 12);
    EXPECT_THAT(list(channel.reached[0]), ElementsAre(6, 7, 8, 9, 10, 11));
    EXPECT_THAT(list(channel.reached[1]), ElementsAre(4, 1));
    EXPECT_EQ(channel.source->chunk_shape(), (Dims{3, 5}));
  }
}

}  // namespace swept_channel_test
}  // namespace batchfs
