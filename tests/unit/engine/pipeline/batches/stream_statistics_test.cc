#include "engine/pipeline/batches/stream_statistics.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs {
namespace stream_statistics_test {

constexpr std::uint64_t kSecond = 1'000'000'000;
const RawTestFormat kRaw;

class StreamStatisticsTest : public testing::Test {
 protected:
  BatchRequest request(std::int64_t batch, std::int64_t rank = 0, std::int64_t world = 1) const {
    return {view_, &kRaw, 0, batch, rank, world};
  }
  FakeData data_{10, 4, 6};
  std::shared_ptr<const View> view_ =
      data_.view(R"({"name": "train", "window": {"time": 1}, "batch": 2})");
  StreamStatistics statistics_;
};

TEST(Rate, IsTheRateOfWhatComesRegularly) {
  Rate rate;
  EXPECT_EQ(rate.per_second(kSecond), 0);
  std::uint64_t now = kSecond;
  for (int i = 0; i < 400; ++i) rate.add(5, now += kSecond / 4);
  EXPECT_NEAR(rate.per_second(now), 20, 0.5);
  EXPECT_LT(rate.per_second(now + 100 * kSecond), 0.01);  // it has stopped
}

TEST(Rate, BeginsWithoutAPeak) {
  Rate rate;
  rate.add(1, kSecond);
  EXPECT_LE(rate.per_second(kSecond + 1), 1.1);
}

TEST_F(StreamStatisticsTest, TellsWhereAReaderIsAndHowLongItWaited) {
  statistics_.record_delivery(request(0), 100, 3'000'000, false, 10 * kSecond);
  statistics_.record_delivery(request(1), 100, 1'000'000, false, 11 * kSecond);
  statistics_.record_delivery(request(2), 0, 2'000'000, true, 12 * kSecond);
  const auto list = statistics_.list(15 * kSecond);
  ASSERT_EQ(list.size(), 1u);
  const StreamStatistics::Stream& reader = list[0];
  EXPECT_EQ(reader.view, "train");
  EXPECT_EQ(reader.format, kRaw.name());
  EXPECT_EQ(reader.rank, 0);
  EXPECT_EQ(reader.world, 1);
  EXPECT_EQ(reader.batch, 2);
  EXPECT_EQ(reader.epoch_batches, 20);
  EXPECT_EQ(reader.batches, 2u);
  EXPECT_EQ(reader.bytes, 200u);
  EXPECT_EQ(reader.failures, 1u);
  EXPECT_EQ(reader.waits.count(), 3u);
  EXPECT_EQ(reader.waits.sum(), 6'000'000u);
  EXPECT_EQ(reader.waits.max(), 3'000'000u);
  EXPECT_GT(reader.batches_per_second, 0);
  EXPECT_NEAR(reader.bytes_per_second, 100 * reader.batches_per_second, 1e-6);
  EXPECT_GT(reader.wait_share, 0);
  EXPECT_EQ(reader.idle, 3 * kSecond);
  EXPECT_EQ(statistics_.waits().count(), 3u);
}

TEST_F(StreamStatisticsTest, RanksAreReadersOfTheirOwn) {
  for (const std::int64_t rank : {3, 1, 0, 2})
    statistics_.record_delivery(request(rank, rank, 4), 1, 1, false, kSecond);
  statistics_.record_delivery(request(0), 1, 1, false, kSecond);
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (const auto& reader : statistics_.list(kSecond))
    order.emplace_back(reader.world, reader.rank);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{
      {1, 0}, {4, 0}, {4, 1}, {4, 2}, {4, 3}};
  EXPECT_EQ(order, expected);
}

TEST_F(StreamStatisticsTest, ForgetsWhoCameLongestAgo) {
  for (std::int64_t rank = 0; rank < 300; ++rank)
    statistics_.record_delivery(request(0, rank, 300), 1, 1, false,
                                static_cast<std::uint64_t>(rank + 1) * kSecond);
  const auto list = statistics_.list(300 * kSecond);
  ASSERT_EQ(list.size(), 256u);
  EXPECT_EQ(list.front().rank, 44);
  EXPECT_EQ(statistics_.waits().count(), 300u);
}

}  // namespace stream_statistics_test
}  // namespace batchfs
