#include "engine/view/order/epoch_order.h"

#include <algorithm>
#include <random>

#include "engine/view/samples/missing.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace epoch_order_test {

const ChunkGroups kGroups{{{20, 3, 4}, {3, 0, 3}}};  // 60 samples

TEST(EpochOrder, IsThatOfOrderWithoutLanes) {
  const Order order{Order::Shuffle::block, 4, 2};
  const EpochOrder epochs(order, kGroups, {60, 60, 7}, nullptr);
  for (std::int64_t i = 0; i < 60; ++i)
    EXPECT_EQ(epochs.sample(i, 5), order.sample(i, 60, 5, kGroups));
}

TEST(EpochOrder, EpochsAreStretchesOfPasses) {
  const Order order{Order::Shuffle::global, 4};
  for (std::int64_t samples : {7, 59, 61, 200}) {
    const EpochOrder epochs(order, kGroups, {60, samples, 7}, nullptr);
    for (std::int64_t e = 0; e < 9; ++e)
      for (std::int64_t i = 0; i < samples; ++i)
        ASSERT_EQ(epochs.sample(i, e),
                  order.sample((e * samples + i) % 60, 60, (e * samples + i) / 60, kGroups));
  }
}

TEST(EpochOrder, OfVeryLateEpochsDoesNotOverflow) {
  const EpochOrder epochs({Order::Shuffle::global, 4}, kGroups, {60, INT64_C(1) << 60, 7}, nullptr);
  const std::int64_t sample = epochs.sample(5, 1'000'000'000);
  EXPECT_GE(sample, 0);
  EXPECT_LT(sample, 60);
}

TEST(EpochOrder, LanesHaveTheBatchesOfTheEpoch) {
  const Order order{Order::Shuffle::none, 0, 1, 3};
  const EpochOrder epochs(order, kGroups, {60, 60, 10}, nullptr);
  for (std::int64_t b = 0; b < 6; ++b)
    EXPECT_EQ(epochs.sample(b * 10, 0), (b % 3 * 2 + b / 3) * 10);
}

/// A random view of v(time, x), and its text, for messages.
struct RandomView {
  explicit RandomView(std::uint32_t seed) : random(seed) {
    const std::int64_t times = pick(40, 120), points = pick(1, 12);
    MemoryData data;
    data.declare("v", "<f4", {"time", "x"}, {times, points}, {pick(1, 20), pick(1, 12)});
    lanes = pick(1, 12);
    const char* shuffles[] = {"none", "global", "block", "block", "block"};
    const std::string shuffle = shuffles[pick(0, 4)];
    remainder = pick(0, 2);
    home = shuffle == "block" && pick(0, 1) == 1;
    Json json = {
        {"window",
         {{"time", {{"size", pick(1, 3)}, {"stride", pick(1, 3)}}},
          {"x", {{"size", 1}, {"stride", 1}}}}},
        {"batch",
         {{"size", pick(1, 8)},
          {"remainder",
           std::vector<std::string>{"keep", "drop", "pad"}[static_cast<std::size_t>(remainder)]}}},
        {"missing", {{"nan", pick(0, 1) == 1 ? "skip" : "keep"}}},
        {"order",
         {{"shuffle", shuffle},
          {"seed", pick(0, 99)},
          {"lanes", lanes},
          {"home", home},
          {"buffer", pick(1, 9)}}}};
    text = json.dump();
    view = parse_view(data.dataset(), text);
    if (!view->needs_scan()) return;
    MissingMarks marks(view->samples());
    for (std::int64_t i = 0; i < view->samples() - 10; ++i)
      if (pick(0, 3) == 0 || i / 9 % 4 == 1) marks.mark(i);
    view = with_samples(*view, std::make_shared<const SampleIndex>(marks.index()));
  }

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }

  std::mt19937 random;
  std::string text;
  std::int64_t lanes = 1, remainder = 0;
  bool home = false;
  std::shared_ptr<const View> view;
};

using Batches = std::vector<std::vector<std::int64_t>>;

Batches batches_of(const View& view, std::int64_t epoch) {
  Batches batches;
  for (std::int64_t b = 0; b < view.batches(); ++b) batches.push_back(view.batch_samples(epoch, b));
  return batches;
}

TEST(EpochOrder, OfRandomViewsHasEachSampleOnce) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const RandomView random(seed);
    const View& view = *random.view;
    for (std::int64_t epoch : {0, 1, 77}) {
      std::vector<std::int64_t> all;
      for (const auto& batch : batches_of(view, epoch))
        all.insert(all.end(), batch.begin(), batch.end());
      const auto whole = static_cast<std::size_t>(view.samples());
      if (random.remainder == 2) {  // pad: the first samples again
        for (std::size_t i = whole; i < all.size(); ++i)
          ASSERT_EQ(all[i], all[i % whole]) << random.text;
        all.resize(whole);
      } else if (random.remainder == 1) {
        ASSERT_EQ(all.size(), whole / static_cast<std::size_t>(view.batch_size()) *
                                  static_cast<std::size_t>(view.batch_size()));
      } else {
        ASSERT_EQ(all.size(), whole) << random.text;
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << random.text;
      ASSERT_GE(all.front(), 0);
      ASSERT_LT(all.back(), view.samples());
    }
  }
}

TEST(EpochOrder, LanesOfRandomViewsWithHomesKeepTheirSamples) {
  int homes = 0;
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    const RandomView random(seed);
    if (!random.home) continue;
    ++homes;
    const View& view = *random.view;
    const Batches first = batches_of(view, 0), other = batches_of(view, 5);
    const std::int64_t whole = view.samples() / view.batch_size() / random.lanes * random.lanes;
    for (std::int64_t l = 0; l < random.lanes; ++l) {
      std::vector<std::int64_t> a, b;
      for (std::int64_t i = l; i < whole; i += random.lanes) {
        const auto at = static_cast<std::size_t>(i);
        a.insert(a.end(), first[at].begin(), first[at].end());
        b.insert(b.end(), other[at].begin(), other[at].end());
      }
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      ASSERT_EQ(a, b) << random.text;
    }
  }
  EXPECT_GT(homes, 300);
}

}  // namespace epoch_order_test
}  // namespace batchfs
