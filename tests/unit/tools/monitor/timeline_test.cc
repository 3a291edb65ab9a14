#include "tools/monitor/timeline.h"

#include <gtest/gtest.h>

#include "engine/base/json_text.h"

namespace batchfs {
namespace timeline_test {

/// Times in seconds.
Json span(const char* name, double begin, double took, int batch = 0, int rank = 0,
          const char* end = nullptr) {
  Json args = {{"view", "train"}, {"epoch", 0}, {"batch", batch},
               {"rank", rank},    {"world", 2}, {"bytes", 100}};
  if (end != nullptr) args["end"] = end;
  return {{"name", name}, {"ph", "X"}, {"ts", begin * 1e6}, {"dur", took * 1e6},
          {"pid", 1},     {"tid", 1},  {"args", args}};
}

TEST(Timeline, AReaderWaitsAndUsesInTurn) {
  const Timeline line =
      timeline({span("wait", 102, 0.5, 2), span("wait", 100, 1, 0), span("wait", 100, 0.25, 1, 1),
                span("decode", 100.5, 4), span("fetch", 100, 0.5), span("assemble", 100, 1)});
  EXPECT_NEAR(line.seconds, 4.5, 1e-6);
  ASSERT_EQ(line.readers.size(), 2u);
  const Timeline::Reader& first = line.readers[0];
  EXPECT_EQ(first.view, "train");
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.world, 2);
  ASSERT_EQ(first.gets.size(), 2u);
  EXPECT_NEAR(first.gets[0].wait.begin, 0, 1e-6);
  EXPECT_NEAR(first.gets[0].wait.end, 1, 1e-6);
  EXPECT_NEAR(first.gets[0].used_until, 2, 1e-6);
  EXPECT_EQ(first.gets[1].batch, 2);
  EXPECT_EQ(first.gets[1].used_until, -1);
  EXPECT_EQ(first.gets[1].bytes, 100u);
  EXPECT_EQ(line.readers[1].rank, 1);
  EXPECT_EQ(line.decodes.size(), 1u);
  EXPECT_EQ(line.fetches.size(), 1u);
  EXPECT_EQ(line.assemblies.size(), 1u);
}

TEST(Timeline, WhoLeftDidNotGetABatch) {
  const Timeline line =
      timeline({span("wait", 0, 1, 0, 0, "the reader left"), span("wait", 2, 1, 0, 0, "failed")});
  ASSERT_EQ(line.readers.size(), 1u);
  ASSERT_EQ(line.readers[0].gets.size(), 1u);
  EXPECT_TRUE(line.readers[0].gets[0].failed);
}

TEST(Timeline, WhatItDoesNotKnowIsLeftOut) {
  EXPECT_EQ(timeline(Json::array()).seconds, 0);
  const Timeline line = timeline(Json::parse(
      R"([1, null, {}, {"ph": "M"}, {"ph": "X", "name": "wait"}, {"ph": "X", "name": 4, "args": {}},
    {"ph": "X", "name": "wait", "ts": 0, "dur": -5, "args": {}}, {"ph": "X", "name": "wait", "ts": "a", "dur": 1, "args": {"rank": 1e300, "bytes": -1}}])"));
  EXPECT_LE(line.readers.size(), 1u);
  EXPECT_THROW(timeline(Json::object()), Error);
}

TEST(Timeline, UnderWay) {
  const std::vector<double> busy = under_way({{0, 2}, {1, 2}, {3.5, 4}}, 4, 4);
  ASSERT_EQ(busy.size(), 4u);
  EXPECT_NEAR(busy[0], 1, 1e-9);
  EXPECT_NEAR(busy[1], 2, 1e-9);
  EXPECT_NEAR(busy[2], 0, 1e-9);
  EXPECT_NEAR(busy[3], 0.5, 1e-9);
  EXPECT_EQ(under_way({{0, 1}}, 0, 3), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(under_way({{0, 1}}, 1, 0).empty());
}

}  // namespace timeline_test
}  // namespace batchfs
