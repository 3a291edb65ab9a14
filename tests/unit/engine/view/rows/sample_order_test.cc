#include "engine/view/rows/sample_order.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/view/order/order.h"
#include "engine/view/rows/window_rows.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/spec.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/view_folder.h"

namespace batchfs {
namespace sample_order_test {

using testing::ElementsAre;
using testing::StartsWith;
using List = std::vector<std::int64_t>;
using Shuffle = Order::Shuffle;

/// 20 windows in 4 chunks.
struct SampleOrderTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("v", "<f4", {"t", "x"}, {20, 3}, {5, 3})
          .add<double>("w", "<f8", {"t"}, {20},
                       {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4})
          .dataset();
  std::shared_ptr<const View> view(const std::string& keys = "") const {
    return folder.parse(dataset, R"({"variables": ["v"], "window": {"t": 1})" + keys + "}");
  }
  const ViewFolder folder;
};

const SampleOrder& order_of(const View& view) { return view.windows()->sample_order(); }

List epoch_of(const View& view, std::int64_t epoch) {
  List samples;
  for (std::int64_t i = 0; i < view.epoch_samples(); ++i)
    samples.push_back(order_of(view).sample(i, epoch));
  return samples;
}

TEST_F(SampleOrderTest, MixesAllOrARunOfGroupsOrNone) {
  const auto v = view(R"(, "missing": {"nan": "skip"})");
  const SampleOrder& order = order_of(*v);
  EXPECT_EQ(order.mixed_samples({Shuffle::none}), 1);
  EXPECT_EQ(order.mixed_samples({Shuffle::global}), 20);
  EXPECT_EQ(order.mixed_samples({Shuffle::block, 0, 3}), 15);
  EXPECT_EQ(order.mixed_samples({Shuffle::block, 0, 9}), 20);
  EXPECT_EQ(order.mixed_samples({Shuffle::block, 0, 3, 2, true}), 10);  // a lane has two groups
  const auto half = with_samples(
      *v, std::make_shared<const SampleIndex>(std::vector<std::uint64_t>{0x55555}, 20));
  EXPECT_EQ(order_of(*half).mixed_samples({Shuffle::global}), 10);
  EXPECT_EQ(order_of(*half).mixed_samples({Shuffle::block, 0, 2}), 5);
}

TEST_F(SampleOrderTest, AnEpochHasEachSampleOnce) {
  EXPECT_EQ(epoch_of(*view(), 3), counting<std::int64_t>(20));
  for (const char* shuffle : {"global", "block"}) {
    const auto v = view(R"(, "order": {"seed": 7, "shuffle": ")" + std::string(shuffle) + "\"}");
    EXPECT_NE(epoch_of(*v, 0), epoch_of(*v, 1));
    EXPECT_EQ(epoch_of(*v, 1), epoch_of(*v, 1));
    List samples = epoch_of(*v, 1);
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(samples, counting<std::int64_t>(20)) << shuffle;
  }
}

TEST_F(SampleOrderTest, CompletesTheBuffer) {
  ViewSpec spec = view()->spec();
  spec.order = {Shuffle::block, 1, 0};
  const SampleOrder order(view()->windows()->values(), spec);
  EXPECT_EQ(spec.order.buffer, 1024);  // chunks of 60 bytes
  EXPECT_EQ(order.groups().count(), 4);
  EXPECT_EQ(order.by(), nullptr);
}

TEST_F(SampleOrderTest, RowsOfAListAreTogetherByChunk) {
  folder.write("rows.csv", "t\n#17\n#1\n#6\n#2\n#18\n#7\n");
  const auto v = view(R"(, "samples": {"list": "rows.csv"},
                          "order": {"shuffle": "block", "buffer": 1})");
  const List rows = epoch_of(*v, 0);
  List sorted = rows, chunks;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, counting<std::int64_t>(6));
  for (const std::int64_t row : rows) {
    std::int64_t start = 0;
    v->starts_of(row, &start);
    if (chunks.empty() || chunks.back() != start / 5) chunks.push_back(start / 5);
  }
  EXPECT_EQ(chunks.size(), 3u);
}

TEST_F(SampleOrderTest, WeightsAreDrawnTheSameInAnotherOrder) {
  const auto v = view(R"(, "samples": {"weights": {"variable": "w"}},
                          "epochs": {"samples": 21}, "missing": {"nan": "skip"})");
  List expected = counting<std::int64_t>(20);
  expected.insert(expected.end(), 3, 19);
  expected.erase(expected.begin(), expected.begin() + 2);
  List samples = epoch_of(*v, 0);
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(samples, expected);
  const auto shuffled = with_order(*v, {Shuffle::global, 5});
  EXPECT_EQ(order_of(*shuffled).draws(), order_of(*v).draws());
  EXPECT_EQ(shuffled->spec().order.seed, 5u);
  EXPECT_EQ(order_of(*with_samples(*v, nullptr)).draws(), order_of(*v).draws());
  // Other samples have other weights.
  const auto index = std::make_shared<const SampleIndex>(std::vector<std::uint64_t>{0xFFFFE}, 20);
  const auto fewer = with_samples(*v, index);
  EXPECT_EQ(order_of(*fewer).draws()->samples(), 19);
  EXPECT_EQ(order_of(*view()).draws(), nullptr);
}

TEST_F(SampleOrderTest, GroupsThatCannotBeAreRefused) {
  const Error error =
      error_of([&] { view(R"(, "order": {"shuffle": "block", "span": {"t": 3}})"); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.why(), StartsWith("order.span.t: "));
}

}  // namespace sample_order_test
}  // namespace batchfs
