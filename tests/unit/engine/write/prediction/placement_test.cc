#include "engine/write/prediction/placement.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace placement_test {

using testing::HasSubstr;

PredictedArray field() {
  return {.name = "p",
          .tensor = "t",
          .axes = {window_axis("lat", 11, 0, 4), whole_axis("k", 2), window_axis("lon", 9, 1, 3)},
          .order = {0, 1, 2},
          .tensor_shape = {4, 2, 3},
          .tensor_dims = {"sample", "lat", "k", "lon"},
          .type = float32()};
}

PredictionOptions chunked() {
  PredictionOptions options;
  options.overlap = Overlap::last;
  options.chunks = {{"lat", 3}, {"k", 2}, {"lon", 4}};
  return options;
}

std::string refusal(const PredictedArray& array, const PredictionSamples& samples,
                    const PredictionOptions& options) {
  try {
    const Placement placement(array, samples, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Placement, BoxesOfAllObjectsAreTheSample) {
  const PredictionSamples samples = grid_samples({{0, 3, 7}, {0, 2, 6}});
  const Placement placement(field(), samples, chunked());
  EXPECT_EQ(placement.grid(), (Dims{4, 1, 3}));
  EXPECT_EQ(placement.objects(), 12);
  EXPECT_EQ(placement.shape(), (Dims{11, 2, 9}));
  std::vector<std::uint32_t> expected(12);
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const std::int64_t* const starts = samples.starts.data() + 2 * row;
    std::set<std::vector<std::int64_t>> seen;
    for (const std::int64_t number : placement.objects_of(starts)) {
      ++expected[static_cast<std::size_t>(number)];
      const Box region = placement.region(number);
      const auto boxes = placement.boxes(number, starts);
      EXPECT_FALSE(boxes.empty());
      for (const SampleBox& box : boxes)
        for (std::int64_t y = 0; y < box.shape[0]; ++y)
          for (std::int64_t k = 0; k < box.shape[1]; ++k)
            for (std::int64_t x = 0; x < box.shape[2]; ++x) {
              const std::int64_t at_y = box.source[0] + y, at_x = box.source[2] + x;
              EXPECT_TRUE(seen.insert({at_y, box.source[1] + k, at_x}).second);
              EXPECT_EQ(region.start[0] + box.target[0] + y, starts[0] + at_y);
              EXPECT_EQ(region.start[2] + box.target[2] + x, starts[1] + at_x);
              EXPECT_LT(box.target[0] + y, region.shape[0]);
              EXPECT_LT(box.target[2] + x, region.shape[2]);
            }
    }
    EXPECT_EQ(seen.size(), 24u);
  }
  for (std::int64_t number = 0; number < 12; ++number) {
    EXPECT_EQ(placement.expected(number), expected[static_cast<std::size_t>(number)]);
    EXPECT_EQ(placement.object_number(placement.object_index(number)), number);
  }
}

TEST(Placement, OverlapsNeedAnAnswer) {
  const PredictionSamples samples = grid_samples({{0, 3, 7}, {0, 3, 6}});
  PredictionOptions options = chunked();
  options.overlap = Overlap::error;
  EXPECT_THAT(refusal(field(), samples, options),
              HasSubstr("windows overlap along 'lat': pass overlap=\"trim\""));
  // Along d1 samples move, and the array does not.
  PredictedArray lines = field();
  lines.axes[2] = whole_axis("lon", 3);
  options.overlap = Overlap::mean;
  options.chunks.clear();
  EXPECT_THAT(refusal(lines, samples, options),
              HasSubstr("same elements of 'p', along 'd1': pass overlap=\"last\""));
  options.overlap = Overlap::last;
  EXPECT_EQ(refusal(lines, samples, options), "");
  PredictedArray classes = field();
  classes.type = make_type(Kind::signed_int, 2);
  options.overlap = Overlap::cosine;
  EXPECT_THAT(refusal(classes, samples, options), HasSubstr("\"cosine\" makes means"));
  options.overlap = Overlap::trim;
  EXPECT_EQ(refusal(classes, samples, options), "");
}

TEST(Placement, ArraysWhoseMembersContradictEachOtherAreRefused) {
  const PredictionSamples samples = grid_samples({{0}, {0}});
  const auto refused = [&](const std::function<void(PredictedArray&)>& change) {
    PredictedArray array = field();
    change(array);
    EXPECT_NE(refusal(array, samples, chunked()), "");
  };
  EXPECT_EQ(refusal(field(), samples, chunked()), "");
  for (const char* name : {"", "a/b", "..", ".", "lat", ".batchfs", ".batchfs.json", "zarr.json"})
    refused([name](PredictedArray& array) { array.name = name; });
  refused([](PredictedArray& array) { array.order = {0, 1}; });
  refused([](PredictedArray& array) { array.order = {0, 1, 1}; });
  refused([](PredictedArray& array) { array.order = {0, 1, 3}; });
  refused([](PredictedArray& array) { array.order = {0, -1, 2}; });
  refused([](PredictedArray& array) { array.tensor_shape = {4, 2, 4}; });
  refused([](PredictedArray& array) { array.axes[0].window = 2; });
  refused([](PredictedArray& array) { array.type = parse_numpy_type("complex64"); });
  refused([](PredictedArray& array) { array.type = datetime_ns(); });
  for (const StackSlice& stack :
       {StackSlice{0, 0, 2, {2}}, StackSlice{4, 0, 2, {2}}, StackSlice{2, -1, 1, {2}},
        StackSlice{2, 0, 2, {3}}, StackSlice{2, 1, 3, {2}}, StackSlice{2, 2, 1, {}}})
    refused([&stack](PredictedArray& array) { array.stack = stack; });
}

TEST(Placement, TooManyChunksAreRefused) {
  PredictedArray array = field();
  array.axes[1].length = 1 << 30;
  array.tensor_shape[1] = 1 << 30;
  PredictionOptions options = chunked();
  options.chunks["k"] = 1;
  EXPECT_THAT(refusal(array, grid_samples({{0}, {0}}), options),
              HasSubstr("larger ones with chunks="));
}

TEST(Placement, ElementsOfNoSampleAreNanOrZero) {
  PredictedArray array = field();
  const PredictionSamples samples = grid_samples({{0}, {0}});
  float value = 0;
  std::memcpy(&value, Placement(array, samples, chunked()).fill().data(), 4);
  EXPECT_TRUE(std::isnan(value));
  array.type = make_type(Kind::unsigned_int, 8);
  EXPECT_EQ(Placement(array, samples, chunked()).fill(), std::vector<std::byte>(8));
  array.type = make_type(Kind::floating, 2);
  EXPECT_EQ(Placement(array, samples, chunked()).fill(),
            (std::vector<std::byte>{std::byte{0}, std::byte{0x7e}}));
}

}  // namespace placement_test
}  // namespace batchfs
