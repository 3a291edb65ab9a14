#include "engine/write/rechunk.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace rechunk_test {

constexpr std::int64_t kSteps = 60, kRows = 40, kColumns = 50, kStepsOfChunk = 7;

float value_at(std::int64_t t, std::int64_t y, std::int64_t x) {
  return static_cast<float>((t * kRows + y) * kColumns + x);
}

/// An array of 480 KB, seven steps to a chunk, raw.
class RechunkTest : public testing::Test {
 protected:
  RechunkTest() {
    const Json document = {{"zarr_format", 2},
                           {"shape", {kSteps, kRows, kColumns}},
                           {"chunks", {kStepsOfChunk, kRows, kColumns}},
                           {"dtype", "<f4"},
                           {"compressor", nullptr},
                           {"fill_value", -1.0},
                           {"order", "C"},
                           {"filters", nullptr}};
    hierarchy_->groups[""] = {};
    hierarchy_->arrays.emplace(
        "a", parse_array_v2("a", document, {{"_ARRAY_DIMENSIONS", {"t", "y", "x"}}}, "a/.zarray"));
    for (std::int64_t c = 0; c * kStepsOfChunk < kSteps; ++c) {
      std::vector<float> values;
      for (std::int64_t t = c * kStepsOfChunk; t < (c + 1) * kStepsOfChunk; ++t)
        for (std::int64_t y = 0; y < kRows; ++y)
          for (std::int64_t x = 0; x < kColumns; ++x) values.push_back(value_at(t, y, x));
      const auto bytes = std::as_bytes(std::span(values));
      store_->set("a/" + std::to_string(c) + ".0.0", {bytes.begin(), bytes.end()});
    }
    options_.chunks = {{"t", 20}, {"y", 8}, {"x", 25}};
    options_.compression = parse_compression("none");
    options_.threads = 2;
    options_.memory = 64 << 20;
  }

  Rechunk rechunk() const { return Rechunk(store_, hierarchy_, options_); }
  RechunkResult run(const std::string& folder, const RechunkRun& how = {}) const {
    return rechunk().run(open_local_output(folder_ / folder), how);
  }
  /// Every file of an output except the one that names the run.
  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> result = files_below(folder_ / folder);
    result.erase(".batchfs.json");
    return result;
  }
  /// The raw chunks of an output, element by element.
  void expect_values(const std::string& folder) const {
    const auto all = files(folder);
    EXPECT_TRUE(all.contains("zarr.json"));
    for (std::int64_t t = 0; t < kSteps; ++t)
      for (std::int64_t y = 0; y < kRows; ++y)
        for (std::int64_t x = 0; x < kColumns; ++x) {
          const std::string key = "a/c/" + std::to_string(t / 20) + "/" + std::to_string(y / 8) +
                                  "/" + std::to_string(x / 25);
          const auto found = all.find(key);
          ASSERT_NE(found, all.end()) << key;
          ASSERT_EQ(found->second.size(), 20u * 8 * 25 * 4);
          float value;
          const std::int64_t at = ((t % 20) * 8 + y % 8) * 25 + x % 25;
          std::memcpy(&value, found->second.data() + at * 4, 4);
          ASSERT_EQ(value, value_at(t, y, x)) << key;
        }
  }

  const TemporaryDirectory folder_;
  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  const std::shared_ptr<Hierarchy> hierarchy_ = std::make_shared<Hierarchy>();
  RechunkOptions options_;
};

TEST_F(RechunkTest, OnePassReadsEveryChunkOnce) {
  EXPECT_FALSE(rechunk().has_two_passes());
  EXPECT_EQ(rechunk().decoded_bytes(), 4u * kSteps * kRows * kColumns);
  const RechunkResult result = run("o");
  EXPECT_EQ(result.state, RechunkResult::State::finished);
  EXPECT_EQ(result.objects, 3u * 5 * 2);
  EXPECT_EQ(result.stored_bytes, 4u * kSteps * kRows * kColumns);
  expect_values("o");
}

TEST_F(RechunkTest, TwoPassesGiveTheSameBytes) {
  run("o");
  for (const bool local : {true, false}) {
    store_->local = local;
    options_.memory = 800 << 10;
    EXPECT_TRUE(rechunk().has_two_passes());
    const std::string folder = local ? "two" : "remote";
    EXPECT_EQ(run(folder, {.temporary = folder_ / "pieces"}).state, RechunkResult::State::finished);
    EXPECT_EQ(files(folder), files("o"));
    EXPECT_TRUE(files("pieces").empty());
  }
}

TEST_F(RechunkTest, RegionsLeaveRoomForTheProgramAndItsEncoders) {
  const auto memory_of_regions = [this](std::uint64_t memory, int threads, const char* codec) {
    options_.memory = memory;
    options_.threads = threads;
    options_.compression = parse_compression(codec);
    options_.chunks = {{"t", -1}, {"y", 1}, {"x", 1}};
    const Rechunk made(store_, hierarchy_, options_);
    const RechunkPlan& plan = made.arrays()[0].plan;
    return std::max(plan.read_bytes, plan.write_bytes);
  };
  // The program takes half of this small limit; the array of 480 KB would fit into all of it.
  EXPECT_LE(memory_of_regions(800 << 10, 1, "none"), 400u << 10);
  options_.chunks = {{"t", 20}};
  // The encoders' memory at this level, 84 MB per thread for large chunks, exceeds 1 MB.
  options_.compression = parse_compression("zstd:19");
  options_.memory = 1 << 20;
  try {
    rechunk();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_EQ(error.where(), "a");
    EXPECT_NE(error.why().find("the memory is 1.0 MB"), std::string::npos) << error.why();
  }
}

TEST_F(RechunkTest, TasksShareBothPasses) {
  run("o");
  options_.memory = 800 << 10;
  options_.tasks = 3;
  const auto state = [this](int task) {
    options_.task = task;
    return run("tasks").state;
  };
  using State = RechunkResult::State;
  EXPECT_EQ(state(2), State::first_pass);
  EXPECT_EQ(state(0), State::first_pass);
  EXPECT_EQ(state(1), State::task_done);
  EXPECT_EQ(state(2), State::task_done);
  EXPECT_FALSE(files("tasks").contains("zarr.json"));
  EXPECT_EQ(state(0), State::finished);
  EXPECT_EQ(files("tasks"), files("o"));
}

TEST_F(RechunkTest, AnInterruptedRunIsContinued) {
  options_.memory = 800 << 10;
  options_.threads = 1;
  run("o");
  RechunkResult result;
  std::uint64_t before = 0;
  int runs = 0;
  do {
    int asked = 0;
    result = run("parts", {.cancelled = [&] { return ++asked > 4; }});
    EXPECT_GE(result.regions_skipped, before);
    before = result.regions_skipped;
    ASSERT_LT(++runs, 100);
  } while (result.state == RechunkResult::State::interrupted);
  EXPECT_GT(runs, 1);
  EXPECT_EQ(files("parts"), files("o"));
  const RechunkResult again = run("parts");
  EXPECT_EQ(again.state, RechunkResult::State::finished);
  EXPECT_EQ(again.objects, 0u);
}

TEST_F(RechunkTest, TheProgressEndsAtAllBytesOfBothPasses) {
  options_.memory = 800 << 10;
  std::int64_t last = 0, all = 0;
  run("o", {.progress = [&](std::int64_t done, std::int64_t of) {
        EXPECT_GE(done, last);
        last = done;
        all = of;
      }});
  EXPECT_GE(all, 2 * 4 * kSteps * kRows * kColumns);
  EXPECT_LE(last, all);
}

TEST_F(RechunkTest, AnotherCommandDoesNotContinueIt) {
  run("o");
  options_.chunks["t"] = 10;
  EXPECT_THROW(run("o"), Error);
}

}  // namespace rechunk_test
}  // namespace batchfs
