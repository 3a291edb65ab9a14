#include "engine/write/prediction/prediction_writer.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "tests/unit/engine/store/temporary_directory.h"
#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace prediction_writer_test {

using testing::HasSubstr;

/// An array (d0, k, d1, d2) of windows along d0, d1 and d2.
PredictedArray field(const std::vector<PredictedAxis>& axes) {
  PredictedArray array{.name = "p", .tensor = "t", .axes = axes, .type = float32()};
  array.tensor_dims = {"sample"};
  for (const PredictedAxis& axis : axes) {
    array.order.push_back(static_cast<int>(array.order.size()));
    array.tensor_shape.push_back(axis.extent());
    array.tensor_dims.push_back(axis.name);
  }
  return array;
}

std::shared_ptr<const CoordinateLabels> float_labels(std::int64_t length) {
  CoordinateLabels labels{.type = float32()};
  for (std::int64_t i = 0; i < length; ++i) {
    const float value = 90.f - static_cast<float>(i);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    labels.values.insert(labels.values.end(), bytes.begin(), bytes.end());
  }
  labels.attributes = {{"units", "degrees_north"}};
  return std::make_shared<const CoordinateLabels>(std::move(labels));
}

class PredictionWriterTest : public testing::Test {
 protected:
  PredictionWriterTest() {
    options_.output = folder_ / "o";
    options_.threads = 2;
  }

  /// Writes all samples in a random order, a few at once, and closes.
  void write_all(const std::vector<PredictedArray>& arrays, const PredictionSamples& samples,
                 const PredictionOptions& options) {
    PredictionWriter writer(arrays, samples, options);
    write(writer, arrays.front(), samples.numbers);
    writer.close();
  }

  void write(PredictionWriter& writer, const PredictedArray& array,
             std::vector<std::int64_t> numbers, unsigned seed = 1) {
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(seed));
    for (std::size_t at = 0; at < numbers.size(); at += 3) {
      const std::vector<std::int64_t> some(
          numbers.begin() + static_cast<std::ptrdiff_t>(at),
          numbers.begin() + static_cast<std::ptrdiff_t>(std::min(numbers.size(), at + 3)));
      const std::vector<float> values = tensor_values(array, some);
      writer.write(array.tensor, some, as_values(values, array, some.size()));
    }
  }

  NdArray stored(const std::string& name, const std::string& folder = "o") {
    const std::shared_ptr<Store> store = open_store(folder_ / folder);
    const Hierarchy hierarchy = open_hierarchy(*store);
    EXPECT_TRUE(hierarchy.consolidated);
    EXPECT_TRUE(hierarchy.problems.empty());
    const Dataset dataset(store, hierarchy);
    return read_variable(dataset.variable(name));
  }

  void expect_values(const PredictedArray& array, const PredictionSamples& samples, Overlap overlap,
                     const std::string& folder = "o") {
    const NdArray found = stored(array.name, folder);
    const std::vector<float> expected = PredictionOracle(array, samples, overlap).values();
    ASSERT_EQ(found.data.size(), expected.size() * 4);
    const auto* const values = reinterpret_cast<const float*>(found.data.data());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(expected[i]))
        ASSERT_TRUE(std::isnan(values[i])) << i;
      else if (overlap == Overlap::cosine || overlap == Overlap::mean)
        ASSERT_NEAR(values[i], expected[i], 1e-4) << i;
      else
        ASSERT_EQ(values[i], expected[i]) << i;
    }
  }

  std::map<std::string, std::string> files(const std::string& folder) const {
    return files_below(folder_ / folder);
  }

  std::string refusal(const std::vector<PredictedArray>& arrays, const PredictionSamples& samples,
                      const PredictionOptions& options) {
    try {
      PredictionWriter writer(arrays, samples, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryDirectory folder_;
  PredictionOptions options_;
};

TEST_F(PredictionWriterTest, EveryOverlapGivesWhatItsDefinitionSays) {
  const PredictionSamples samples = grid_samples({{0, 3, 6, 9}, {0, 5, 9}, {-2, 5, 12, 19}}, 5, 2);
  const PredictedArray array = field({window_axis("time", 10, 0, 1), whole_axis("k", 2),
                                      window_axis("lat", 17, 1, 8), window_axis("lon", 30, 2, 10)});
  for (const Overlap overlap : {Overlap::trim, Overlap::mean, Overlap::cosine, Overlap::last}) {
    options_.overlap = overlap;
    options_.chunks = {{"lat", 6}, {"lon", 7}};
    options_.output = folder_ / overlap_name(overlap);
    write_all({array}, samples, options_);
    expect_values(array, samples, overlap, overlap_name(overlap));
    EXPECT_FALSE(files(overlap_name(overlap)).contains(".batchfs/lock-rank-0"));
  }
  options_.overlap = Overlap::error;
  EXPECT_THAT(refusal({array}, samples, options_), HasSubstr("windows overlap along 'lat'"));
}

TEST_F(PredictionWriterTest, WindowsGoAroundACircle) {
  const PredictionSamples samples = grid_samples({{0, 7, 14, 21}, {0, 9, 17}});
  const PredictedArray array =
      field({window_axis("lon", 28, 0, 11, true), window_axis("lat", 27, 1, 10)});
  for (const Overlap overlap : {Overlap::trim, Overlap::mean, Overlap::cosine, Overlap::last}) {
    options_.overlap = overlap;
    options_.chunks = {{"lat", 27}, {"lon", 5}};
    options_.shards = {{"lon", 10}};
    options_.output = folder_ / overlap_name(overlap);
    write_all({array}, samples, options_);
    expect_values(array, samples, overlap, overlap_name(overlap));
  }
}

TEST_F(PredictionWriterTest, SamplesThatAreNoGridAreTrimmedByDistance) {
  PredictionSamples samples = grid_samples({{0}, {0}});
  samples.numbers = {1, 2, 3, 9};
  samples.starts = {0, 0, 3, 4, 9, 2, 5, 11};
  samples.is_grid = false;
  const PredictedArray array = field({window_axis("lat", 16, 0, 7), window_axis("lon", 20, 1, 9)});
  options_.overlap = Overlap::trim;
  options_.chunks = {{"lat", 5}, {"lon", 20}};
  write_all({array}, samples, options_);
  expect_values(array, samples, Overlap::trim);
}

TEST_F(PredictionWriterTest, StacksOffsetsAndTheStartsOfWindowsHaveTheirAxes) {
  // A tensor (sample, channels, step, lat) whose channels 1..6 are levels by members.
  const PredictionSamples samples = grid_samples({{4, 8, 2, 6}, {0, 4}});
  PredictionSamples sorted = samples;
  PredictedArray array{.name = "q",
                       .tensor = "y",
                       .axes = {{.name = "init_time", .length = 4, .window = 0, .by_start = true},
                                whole_axis("lead_time", 2),
                                whole_axis("member", 2),
                                window_axis("lat", 8, 1, 4),
                                whole_axis("level", 3)},
                       .order = {-1, 2, 1, 3, 0},
                       .stack = StackSlice{1, 1, 7, {3, 2}},
                       .tensor_shape = {8, 2, 4},
                       .tensor_dims = {"sample", "channel", "time", "lat"},
                       .type = float32()};
  write_all({array}, sorted, options_);
  expect_values(array, sorted, Overlap::error);

  // Two blocks of a window: offsets 1 and 5 from its start.
  PredictedArray shifted =
      field({{.name = "time", .length = 14, .window = 0, .blocks = {{1, 1}, {9, 1}}},
             whole_axis("x", 3)});
  const PredictionSamples one = grid_samples({{0, 1, 2, 3, 4}});
  options_.output = folder_ / "shifted";
  write_all({shifted}, one, options_);
  expect_values(shifted, one, Overlap::error, "shifted");
  const PredictionSamples more = grid_samples({{0, 8}});
  options_.output = folder_ / "more";
  EXPECT_THAT(refusal({shifted}, more, options_), HasSubstr("same elements of 'p', along 'time'"));
  options_.overlap = Overlap::last;
  write_all({shifted}, more, options_);
  expect_values(shifted, more, Overlap::last, "more");
}

TEST_F(PredictionWriterTest, RanksAndPartsGiveTheSameBytes) {
  const PredictionSamples samples = grid_samples({{0, 3, 6, 9, 12}, {0, 5, 10}});
  PredictedArray array = field({window_axis("lat", 20, 0, 8), window_axis("lon", 18, 1, 8)});
  array.axes[0].labels = float_labels(20);
  options_.overlap = Overlap::cosine;
  options_.chunks = {{"lat", 4}, {"lon", 9}};
  write_all({array}, samples, options_);
  const auto alone = files("o");
  EXPECT_TRUE(alone.contains("zarr.json") && alone.contains("lat/c/0"));
  // More than two windows share elements: ramps of one window cross.
  expect_values(array, samples, Overlap::cosine);

  options_.output = folder_ / "ranks";
  options_.world = 3;
  options_.memory = 1;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      PredictionOptions options = options_;
      options.rank = rank;
      PredictionWriter writer({array}, samples, options);
      std::vector<std::int64_t> own;
      for (std::size_t i = static_cast<std::size_t>(rank); i < samples.size(); i += 3)
        own.push_back(samples.numbers[i]);
      write(writer, array, own, static_cast<unsigned>(rank));
      writer.close();
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(files("ranks"), alone);

  // One rank that ends three times on the way, once by a kill.
  options_.output = folder_ / "again";
  options_.world = 1;
  for (std::size_t from = 0; from < 15; from += 4) {
    PredictionWriter writer({array}, samples, options_);
    EXPECT_EQ(writer.missing(), 15 - from);
    const auto begin = samples.numbers.begin() + static_cast<std::ptrdiff_t>(from);
    write(writer, array,
          {begin, begin + std::min<std::ptrdiff_t>(4, samples.numbers.end() - begin)});
    if (from == 4) {
      EXPECT_THROW(writer.close(), Error);
    } else if (from == 12) {
      writer.close();
      EXPECT_TRUE(writer.finished());
    }
  }
  EXPECT_EQ(files("again"), alone);

  // A finished output stays, and a new writer has nothing to do.
  PredictionWriter writer({array}, samples, options_);
  EXPECT_TRUE(writer.finished());
  EXPECT_EQ(writer.missing(), 0u);
  write(writer, array, samples.numbers);
  writer.close();
  EXPECT_EQ(files("again"), alone);
}

TEST_F(PredictionWriterTest, TheRankThatEndsLastSaysWhatIsMissing) {
  const PredictionSamples samples = grid_samples({{0, 1, 2, 3, 4}});
  const PredictedArray array = field({window_axis("time", 5, 0, 1), whole_axis("x", 3)});
  PredictionWriter writer({array}, samples, options_);
  write(writer, array, {0, 3});
  const std::vector<bool> expected{true, false, false, true, false};
  try {
    writer.close();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 of 5 samples are missing, in 3 chunks"));
  }
  EXPECT_EQ(writer.done(), expected);
  EXPECT_FALSE(writer.finished());
  const std::vector<float> values = tensor_values(array, {1});
  EXPECT_THROW(writer.write("t", std::vector<std::int64_t>{1}, as_values(values, array, 1)), Error);
}

TEST_F(PredictionWriterTest, WhatFailedOnAnotherThreadIsThrownByLaterCalls) {
  const PredictionSamples samples = grid_samples({{0, 1, 2, 3, 4}});
  const PredictedArray array = field({window_axis("time", 5, 0, 1), whole_axis("x", 3)});
  {
    PredictionWriter writer({array}, samples, options_);
    std::ofstream(folder_ / "o/p") << "in the way";
    const auto write_on = [&] {
      for (int i = 0; i < 1000; ++i) {
        write(writer, array, samples.numbers);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    };
    EXPECT_THROW(write_on(), Error);
    EXPECT_THROW(writer.close(), Error);
    EXPECT_FALSE(writer.finished());
  }
  std::filesystem::remove(folder_ / "o/p");
  write_all({array}, samples, options_);
  expect_values(array, samples, Overlap::error);
}

TEST_F(PredictionWriterTest, WhatDoesNotFitIsRefused) {
  const PredictionSamples samples = grid_samples({{0, 1, 2}});
  const PredictedArray array = field({window_axis("time", 3, 0, 1), whole_axis("x", 4)});
  PredictionWriter writer({array}, samples, options_);
  const std::vector<float> values = tensor_values(array, {1});
  const auto said = [&](const std::string& tensor, std::vector<std::int64_t> numbers,
                        PredictedValues given) -> std::string {
    try {
      writer.write(tensor, numbers, given);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  PredictedValues right = as_values(values, array, 1);
  EXPECT_THAT(said("y", {1}, right), HasSubstr("nothing for the tensor 'y'; it has t"));
  EXPECT_THAT(said("t", {7}, right), HasSubstr("no sample 7"));
  EXPECT_THAT(said("t", {0, 1}, right),
              HasSubstr("has the shape (1, 1, 4), and the batch's is (2, 1, 4) (sample, time, x)"));
  PredictedValues wrong = right;
  wrong.type = parse_numpy_type("complex64");
  EXPECT_THAT(said("t", {1}, wrong), HasSubstr("is of the type complex64"));
  EXPECT_EQ(said("t", {1}, right), "");

  // A second writer of the rank, and other arguments.
  EXPECT_THAT(refusal({array}, samples, options_), HasSubstr("another process writes rank 0"));
  PredictionOptions other = options_;
  other.rank = 1, other.world = 2;
  EXPECT_EQ(refusal({array}, samples, other), "");
  other.chunks = {{"x", 2}};
  EXPECT_THAT(refusal({array}, samples, other), HasSubstr("its \"arrays\" differs"));
  other.chunks.clear();
  other.overlap = Overlap::last;
  EXPECT_THAT(refusal({array}, samples, other), HasSubstr("its \"overlap\" differs"));
  PredictionSamples moved = samples;
  moved.digest = "x";
  other.overlap = Overlap::error;
  EXPECT_THAT(refusal({array}, moved, other), HasSubstr("its \"samples\" differs"));
  other.rank = 2;
  EXPECT_THAT(refusal({array}, samples, other), HasSubstr("rank 2 is not below world 2"));
}

TEST_F(PredictionWriterTest, PlacesThatAreNoOutputAreRefused) {
  const PredictionSamples samples = grid_samples({{0}});
  const PredictedArray array = field({window_axis("time", 1, 0, 1)});
  std::filesystem::create_directory(folder_ / "other");
  std::ofstream(folder_ / "other/x") << "x";
  std::ofstream(folder_ / "file") << "x";
  const auto said = [&](const std::string& place) {
    PredictionOptions options = options_;
    options.output = place;
    return refusal({array}, samples, options);
  };
  EXPECT_THAT(said(folder_ / "file"), HasSubstr("is a file; name a new folder"));
  EXPECT_THAT(said(folder_ / "other"), HasSubstr("batchfs did not write it; name a new place"));
  EXPECT_THAT(said("s3://bucket/x"), HasSubstr("written to s3://: name a folder"));
  EXPECT_THAT(said(folder_ / "o.zip"), HasSubstr("not the name of a folder"));
}

TEST_F(PredictionWriterTest, PartsOfAnotherRunAreRefused) {
  const PredictionSamples samples = grid_samples({{0, 1, 2}});
  const PredictedArray array = field({window_axis("time", 3, 0, 1), whole_axis("x", 4)});
  options_.chunks = {{"time", 3}};
  {
    PredictionWriter writer({array}, samples, options_);
    write(writer, array, {1});
  }
  std::string part;
  for (const auto& [name, content] : files("o"))
    if (name.starts_with(".batchfs/parts/p/0/")) part = name;
  ASSERT_FALSE(part.empty());
  const std::string content = files("o").at(part);
  const std::size_t end = content.find('\n');
  const std::string run = content.substr(content.find("\"run\""), content.find(',') - 1);
  std::string damaged = content;
  damaged[content.find("\"run\":\"") + 7] ^= 1;
  for (const std::string& text :
       {damaged, std::string("nonsense"), std::string(), content.substr(0, content.size() - 1),
        "{" + run + ",\"samples\":[77],\"bytes\":[16]}\n" + content.substr(end + 1)}) {
    std::ofstream(folder_ / ("o/" + part), std::ios::binary) << text;
    EXPECT_THAT(refusal({array}, samples, options_), HasSubstr("remove")) << text;
  }
  std::ofstream(folder_ / ("o/" + part), std::ios::binary) << content;
  EXPECT_EQ(refusal({array}, samples, options_), "");
  // Values of another size are detected when the part is read.
  std::ofstream(folder_ / ("o/" + part), std::ios::binary)
      << "{" + run + ",\"samples\":[1],\"bytes\":[12]}\n" + content.substr(end + 5);
  PredictionWriter writer({array}, samples, options_);
  write(writer, array, {0, 2});
  EXPECT_THROW(writer.close(), Error);
}

TEST_F(PredictionWriterTest, ThreadsMayWriteAtTheSameTime) {
  std::vector<std::int64_t> starts(60);
  for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = static_cast<std::int64_t>(i);
  const PredictionSamples samples = grid_samples({starts});
  const PredictedArray array = field({window_axis("time", 65, 0, 6), whole_axis("x", 5)});
  options_.overlap = Overlap::mean;
  options_.chunks = {{"time", 8}};
  options_.memory = 2000;
  PredictionWriter writer({array}, samples, options_);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::int64_t> own;
      for (std::size_t i = t; i < 60; i += 4) own.push_back(samples.numbers[i]);
      write(writer, array, own, static_cast<unsigned>(t));
    });
  for (std::thread& thread : threads) thread.join();
  writer.close();
  expect_values(array, samples, Overlap::mean);
}

TEST_F(PredictionWriterTest, CoordinatesAreStoredOnceAndMustAgree) {
  const PredictionSamples samples = grid_samples({{0, 1, 2}});
  PredictedArray first = field({window_axis("time", 3, 0, 1), whole_axis("lat", 4)});
  first.axes[1].labels = float_labels(4);
  PredictedArray second = first;
  second.name = "q";
  write_all({first, second}, samples, options_);
  const NdArray labels = stored("lat");
  EXPECT_EQ(labels.shape, Dims{4});
  EXPECT_EQ(reinterpret_cast<const float*>(labels.data.data())[3], 87.f);
  expect_values(first, samples, Overlap::error);
  expect_values(second, samples, Overlap::error);

  CoordinateLabels others = *first.axes[1].labels;
  others.values[0] ^= std::byte{1};
  second.axes[1].labels = std::make_shared<const CoordinateLabels>(others);
  options_.output = folder_ / "others";
  EXPECT_THAT(refusal({first, second}, samples, options_),
              HasSubstr("'q' has other positions along 'lat'"));
  second.axes[1].labels = nullptr;
  second.name = "p";
  EXPECT_THAT(refusal({first, second}, samples, options_), HasSubstr("values for 'p'"));

  CoordinateLabels words{.type = {.kind = Kind::variable_string, .itemsize = 0}};
  words.strings = {"a", "", "gr\xc3\xbc\xc3\x9f", "d"};
  first.axes[1].labels = std::make_shared<const CoordinateLabels>(words);
  write_all({first}, samples, options_);
  const NdArray read = stored("lat", "others");
  EXPECT_EQ(read.shape, Dims{4});
  EXPECT_EQ(label_text(read, 2), "gr\xc3\xbc\xc3\x9f");
}

}  // namespace prediction_writer_test
}  // namespace batchfs
