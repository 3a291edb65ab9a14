#include "engine/write/prediction/epoch_samples.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace epoch_samples_test {

using testing::ElementsAre;

std::shared_ptr<const View> view_of(const std::string& json) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "x"}, {4, 6}, {1, 6});
  return parse_view(data.dataset(), json);
}

TEST(EpochSamples, AreSortedWhateverTheOrderOfTheEpoch) {
  const auto view = view_of(R"({"window": {"time": 1, "x": {"size": 3, "stride": 3}}, "batch": 3,
                                "order": {"shuffle": "global", "seed": 7}})");
  const EpochSamples epoch = samples_of_epoch(*view, 1);
  EXPECT_THAT(epoch.samples.numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(epoch.samples.starts, ElementsAre(0, 0, 0, 3, 1, 0, 1, 3, 2, 0, 2, 3, 3, 0, 3, 3));
  EXPECT_THAT(epoch.samples.dims, ElementsAre("time", "x"));
  EXPECT_TRUE(epoch.samples.is_grid);
  EXPECT_THAT(epoch.batches, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2));
  for (std::int64_t batch = 0, i = 0; batch < view->batches(); ++batch)
    for (const std::int64_t sample : view->batch_samples(1, batch))
      EXPECT_EQ(epoch.samples.numbers[epoch.rows[static_cast<std::size_t>(i++)]], sample);
  // hashlib.sha256(numpy.arange(8).tobytes() + starts.tobytes()).hexdigest()[:32]
  EXPECT_EQ(epoch.samples.digest, "105004a86a5a1f61f9999704ca3cdd04");
  EXPECT_THAT(starts_along(epoch.samples, 1), ElementsAre(0, 3));
}

TEST(EpochSamples, ThatPadTheLastBatchAreThereOnce) {
  const EpochSamples epoch = samples_of_epoch(
      *view_of(R"({"window": {"time": 1}, "batch": {"size": 3, "remainder": "pad"}})"), 0);
  EXPECT_THAT(epoch.samples.numbers, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(epoch.rows, ElementsAre(0u, 1u, 2u, 3u, 0u, 1u));
}

TEST(EpochSamples, OfPartOfTheWindowsAreNoGrid) {
  const EpochSamples epoch =
      samples_of_epoch(*view_of(R"({"window": {"time": 1, "x": {"size": 3, "stride": 3}},
                   "batch": {"size": 3, "remainder": "drop"}})"),
                       0);
  EXPECT_EQ(epoch.samples.size(), 6u);
  EXPECT_TRUE(epoch.samples.is_grid);  // three times, both starts
  const EpochSamples odd =
      samples_of_epoch(*view_of(R"({"window": {"time": 1, "x": {"size": 3, "stride": 3}},
                   "batch": {"size": 7, "remainder": "drop"}})"),
                       0);
  EXPECT_EQ(odd.samples.size(), 7u);
  EXPECT_FALSE(odd.samples.is_grid);
}

TEST(EpochSamples, BatchesAreToDoWhileOneOfTheirSamplesIs) {
  const EpochSamples epoch =
      samples_of_epoch(*view_of(R"({"window": {"time": 1, "x": {"size": 3, "stride": 3}},
                                    "batch": 3})"),
                       0);
  std::vector<bool> done(8, true);
  EXPECT_THAT(batches_to_do(epoch, done), ElementsAre());
  done[1] = done[2] = done[7] = false;
  EXPECT_THAT(batches_to_do(epoch, done), ElementsAre(0, 2));
}

}  // namespace epoch_samples_test
}  // namespace batchfs
