#include "engine/write/prediction/prediction_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace prediction_chunks_test {

using testing::HasSubstr;

PredictedArray global() {
  return {.name = "p",
          .tensor = "t",
          .axes = {window_axis("time", 1000, 0, 1), whole_axis("level", 37), whole_axis("lat", 721),
                   whole_axis("lon", 1440)},
          .type = float32()};
}

TEST(PredictionChunks, ByDefaultTheyHaveOnePositionOfAWindowAndUpToFourMebibytes) {
  const OutputChunks chunks = prediction_chunks(global(), {});
  EXPECT_EQ(chunks.chunk, (Dims{1, 1, 721, 1440}));
  EXPECT_EQ(chunks.object, chunks.chunk);
  EXPECT_FALSE(chunks.is_sharded);
  PredictedArray tiles = global();
  tiles.axes[2] = window_axis("lat", 721, 1, 64);
  tiles.axes[3].length = 14400;
  EXPECT_EQ(prediction_chunks(tiles, {}).chunk, (Dims{1, 1, 46, 14400}));
}

TEST(PredictionChunks, LengthsByNameAreTakenAsFarAsTheArrayGoes) {
  PredictionOptions options;
  options.chunks = {{"time", 10}, {"level", -1}, {"lat", 5000}};
  options.shards = {{"time", 30}, {"lon", -1}, {"level", 74}};
  const OutputChunks chunks = prediction_chunks(global(), options);
  EXPECT_EQ(chunks.chunk, (Dims{10, 37, 721, 1440}));
  EXPECT_EQ(chunks.object, (Dims{30, 37, 721, 1440}));
  EXPECT_TRUE(chunks.is_sharded);
  options.shards = {{"lon", -1}};  // one chunk has all of it
  EXPECT_FALSE(prediction_chunks(global(), options).is_sharded);
}

TEST(PredictionChunks, LengthsThatMakeNoSenseAreRefused) {
  const auto said = [](const PredictionOptions& options) -> std::string {
    try {
      prediction_chunks(global(), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  PredictionOptions options;
  options.chunks = {{"x", 2}};
  EXPECT_THAT(said(options), HasSubstr("chunks= names 'x', and 'p' has time, level, lat, lon"));
  options.chunks = {{"time", 0}};
  EXPECT_THAT(said(options), HasSubstr("chunks= has 0 for 'time'"));
  options.chunks = {{"time", 4}};
  options.shards = {{"time", 6}};
  EXPECT_THAT(said(options),
              HasSubstr("shards of 6 along 'time' are not a whole number of chunks of 4"));
}

TEST(PredictionChunks, AnAxisOfNoElementsHasAChunkOfOne) {
  PredictedArray array = global();
  array.axes[0].length = 0;
  EXPECT_EQ(prediction_chunks(array, {}).chunk[0], 1);
}

}  // namespace prediction_chunks_test
}  // namespace batchfs
