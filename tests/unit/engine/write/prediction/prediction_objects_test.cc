#include "engine/write/prediction/prediction_objects.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"
#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace prediction_objects_test {

using testing::ElementsAre;

/// Samples 10, 11, 12 of two elements each along an axis of six, in chunks of three.
class PredictionObjectsTest : public testing::Test {
 protected:
  PredictionObjects objects() const {
    PredictionOptions options;
    options.chunks = {{"x", 3}};
    options.compression = parse_compression("none");
    return {{{.name = "p",
              .tensor = "t",
              .axes = {window_axis("x", 6, 0, 2)},
              .order = {0},
              .tensor_shape = {2},
              .tensor_dims = {"sample", "x"},
              .type = float32()}},
            grid_samples({{0, 2, 4}}, 10),
            options,
            folder_};
  }
  static ObjectSamples values(std::int64_t sample, const std::vector<float>& numbers) {
    ObjectSamples samples;
    Buffer buffer(numbers.size() * 4);
    std::memcpy(buffer.data(), numbers.data(), buffer.size());
    samples[sample] = std::move(buffer);
    return samples;
  }

  const TemporaryDirectory directory_;
  const PredictionFolder folder_{directory_ / "o"};
};

TEST_F(PredictionObjectsTest, AnObjectIsPutWithItsLastSample) {
  const PredictionObjects all = objects();
  EXPECT_EQ(all.objects_lacking(), 2u);
  EXPECT_FALSE(all.add({0, 0}, values(10, {1, 2})));
  EXPECT_THAT(all.samples_in_parts({0, 0}), ElementsAre(10));
  EXPECT_THAT(all.samples_there(), ElementsAre(true, false, false));
  EXPECT_TRUE(all.add({0, 0}, values(11, {3})));
  EXPECT_TRUE(all.is_there({0, 0}));
  EXPECT_THAT(all.objects_there(0), ElementsAre(true, false));
  EXPECT_TRUE(all.objects_with_parts().empty());
  EXPECT_EQ(all.objects_lacking(), 1u);
  const auto stored = folder_.store().get("p/c/0");
  ASSERT_EQ(stored->size(), 12u);
  const std::vector<float> expected{1, 2, 3};
  EXPECT_EQ(std::memcmp(stored->data(), expected.data(), 12), 0);
}

TEST_F(PredictionObjectsTest, PartsThatAKilledProcessLeftArePutTogether) {
  const PredictionObjects all = objects();
  all.put_part({0, 1}, values(12, {5, 6}));
  all.put_part({0, 1}, values(11, {4}));
  EXPECT_FALSE(all.is_there({0, 1}));
  EXPECT_THAT(all.samples_there(), ElementsAre(false, false, true));
  all.put_complete();
  EXPECT_TRUE(all.is_there({0, 1}));
  // It was killed between the object and the removal of its parts.
  all.put_part({0, 1}, values(11, {4}));
  EXPECT_TRUE(all.add({0, 1}, {}));
  EXPECT_TRUE(all.objects_with_parts().empty());
}

TEST_F(PredictionObjectsTest, FilesOfOtherNamesAreNoObjects) {
  const PredictionObjects all = objects();
  for (const char* key : {"p/c/2", "p/c/-1", "p/c/x", "p/c/0/0", "p/c/01x"})
    folder_.store().put(key, "x");
  EXPECT_THAT(all.objects_there(0), ElementsAre(false, false));
  folder_.store().put("p/c/1", "x");
  EXPECT_THAT(all.objects_there(0), ElementsAre(false, true));
}

TEST_F(PredictionObjectsTest, SamplesAndPartsOfOthersAreRefused) {
  const PredictionObjects all = objects();
  EXPECT_EQ(all.row_of(12), 2u);
  EXPECT_THROW(all.row_of(9), Error);
  EXPECT_THROW(all.row_of(13), Error);
  all.put_part({0, 0}, values(77, {1}));
  EXPECT_THROW(all.samples_in_parts({0, 0}), Error);
  EXPECT_THROW(all.samples_there(), Error);
  all.put_part({0, 1}, values(10, {1}));  // which it has no values of
  EXPECT_THROW(all.samples_in_parts({0, 1}), Error);
  folder_.store().put(".batchfs/parts/p/2/0-1", "x");
  EXPECT_THROW(all.objects_with_parts(), Error);
}

TEST_F(PredictionObjectsTest, SamplesMustAscendAndHaveStarts) {
  const auto made = [this](PredictionSamples samples) {
    return PredictionObjects({}, std::move(samples), {}, folder_);
  };
  EXPECT_NO_THROW(made(grid_samples({{0, 1}})));
  PredictionSamples samples = grid_samples({{0, 1}});
  samples.numbers = {3, 3};
  EXPECT_THROW(made(samples), Error);
  samples = grid_samples({{0, 1}});
  samples.starts.pop_back();
  EXPECT_THROW(made(samples), Error);
}

}  // namespace prediction_objects_test
}  // namespace batchfs
