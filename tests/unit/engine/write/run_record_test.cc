#include "engine/write/run_record.h"

#include <filesystem>
#include <random>
#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

namespace batchfs {
namespace run_record_test {

TEST(NumberRanges, HoldsTheNumbersInAnyOrder) {
  std::mt19937 random(1);
  std::set<std::int64_t> wanted;
  NumberRanges ranges;
  for (int i = 0; i < 500; ++i) {
    const std::int64_t number = std::uniform_int_distribution<std::int64_t>(0, 300)(random);
    wanted.insert(number);
    ranges.add(number);
    ASSERT_EQ(ranges.count(), static_cast<std::int64_t>(wanted.size()));
  }
  const Json json = ranges.json();
  const NumberRanges read = NumberRanges::parse(JsonRef(json, "done"));
  for (std::int64_t number = -1; number < 302; ++number) {
    EXPECT_EQ(ranges.contains(number), wanted.contains(number));
    EXPECT_EQ(read.contains(number), wanted.contains(number));
  }
  for (std::size_t i = 1; i < json.size(); ++i)  // neighbours are one range
    EXPECT_GT(json[i][0].get<int>(), json[i - 1][1].get<int>() + 1);
}

TEST(NumberRanges, OtherJsonIsRefused) {
  for (const char* text : {"{}", "[1]", "[[1]]", "[[2, 1]]", "[[-1, 3]]"}) {
    const Json json = Json::parse(text);
    EXPECT_THROW(NumberRanges::parse(JsonRef(json, "done")), Error) << text;
  }
}

class RunRecordTest : public testing::Test {
 protected:
  RunRecordTest() { std::filesystem::remove_all(path_); }
  ~RunRecordTest() override { std::filesystem::remove_all(path_); }
  const std::string path_ = testing::TempDir() + "run_record-" + std::to_string(::getpid());
  const std::shared_ptr<OutputStore> output_ = open_local_output(path_);
};

TEST_F(RunRecordTest, WhatWasSavedIsKnownToTheNextRun) {
  {
    RunRecord record(*output_, {{"codec", "zstd"}}, 0, 2);
    record.open();
    record.note(3);
    record.save();
    record.note(4);  // not saved
  }
  {
    RunRecord record(*output_, {{"codec", "zstd"}}, 0, 2);
    record.open();
    EXPECT_TRUE(record.is_done(3));
    EXPECT_FALSE(record.is_done(4));
    record.complete(0);
    EXPECT_FALSE(record.all_complete(0));
  }
  RunRecord other(*output_, {{"codec", "zstd"}}, 1, 2);
  other.open();
  EXPECT_FALSE(other.is_done(3));
  other.complete(0);
  EXPECT_TRUE(other.all_complete(0));
  EXPECT_FALSE(other.all_complete(1));
}

TEST_F(RunRecordTest, AnotherRunIsRefusedByWhatDiffers) {
  RunRecord(*output_, {{"codec", "zstd"}}, 0, 1).open();
  RunRecord record(*output_, {{"codec", "gzip"}}, 0, 1);
  try {
    record.open();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.why().find("\"codec\" differs"), std::string::npos) << error.why();
  }
}

TEST_F(RunRecordTest, ASecondProcessIsRefused) {
  RunRecord first(*output_, {{"a", 1}}, 0, 1), second(*output_, {{"a", 1}}, 0, 1);
  first.open();
  EXPECT_THROW(second.open(), Error);
}

}  // namespace run_record_test
}  // namespace batchfs
