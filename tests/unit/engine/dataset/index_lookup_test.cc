#include "engine/dataset/index_lookup.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace index_lookup_test {

using testing::HasSubstr;

struct IndexLookupTest : testing::Test {
  IndexLookupTest() {
    data.index<double>("x", "<f8", {0, 10, NAN, 20, 40})
        .index<float>("lon", "<f4", {0, 90, 180, 270}, {{"units", "degrees_east"}})
        .index<std::int32_t>("time", "<i4", {0, 6, 12},
                             {{"units", "hours since 2000-01-01"}, {"calendar", "noleap"}})
        .add<char>("name", "|S2", {"name"}, {2}, {'a', 'b', 'c', 'd'});
    dataset = data.dataset();
  }
  std::int64_t nearest(const char* dim, const char* text,
                       std::optional<std::string> tolerance = std::nullopt) const {
    return IndexLookup(*dataset, dim, "").nearest(text, tolerance);
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

// pandas.Index(values).get_indexer([x], method="nearest", tolerance=t), but for the circle
TEST_F(IndexLookupTest, TheNearestLabelIsThatOfPandas) {
  EXPECT_EQ(nearest("x", "12"), 1);
  EXPECT_EQ(nearest("x", "15"), 3);  // halfway: the larger
  EXPECT_EQ(nearest("x", "-1e300"), 0);
  EXPECT_EQ(nearest("x", "30", "10"), 4);
  EXPECT_EQ(nearest("time", "2000-01-01T04"), 1);
  EXPECT_EQ(nearest("time", "2000-01-01T09"), 2);
  EXPECT_EQ(nearest("time", "2000-01-01T05:00", "1h"), 1);
  EXPECT_EQ(nearest("lon", "359"), 0);
  EXPECT_EQ(nearest("lon", "-80"), 3);
}

TEST_F(IndexLookupTest, WhatHasNoNearestLabelSaysWhy) {
  const struct {
    const char *dim, *text, *tolerance, *says;
  } cases[] = {
      {"x", "30", "9", "x: no label of 'x' within 9 of '30'; the nearest is 40.0"},
      {"x", "30", "-1", "the tolerance '-1' is less than 0"},
      {"x", "30", "nan", "the tolerance 'nan' is less than 0"},
      {"x", "nan", "1", "'x' has no label next to 'nan'"},
      {"x", "#1", "1", "'#1' is a position"},
      {"time", "2000-01-01T05", "30m",
       "no label of 'time' within 30m of '2000-01-01T05'; the nearest is 2000-01-01T06:00:00"},
      {"time", "2000-01-01T05", "2", "the tolerance '2' is not a length of time"},
      {"time", "2000-02-29", "2D", "'2000-02-29' is not a date of the calendar noleap"},
      {"name", "ab", "1", "'name' holds text"}};
  for (const auto& c : cases)
    EXPECT_THAT(error_of([&] { nearest(c.dim, c.text, c.tolerance); }).why(), HasSubstr(c.says));
}

TEST_F(IndexLookupTest, TextsAreKnownWithoutReading) {
  EXPECT_TRUE(IndexLookup(*dataset, "name", "").has_texts());
  EXPECT_FALSE(IndexLookup(*dataset, "x", "").has_texts());
  EXPECT_FALSE(IndexLookup(*dataset, "time", "").has_texts());
}

TEST_F(IndexLookupTest, TimesThatAreNumbersHaveDates) {
  const IndexLookup lookup(*dataset, "time", "");
  EXPECT_EQ(lookup.extent(), "goes from 2000-01-01T00:00:00 to 2000-01-01T12:00:00");
  EXPECT_EQ(lookup.shown(1), "2000-01-01T06:00:00");
  EXPECT_TRUE(lookup.partial_date("2000-01-01"));
  EXPECT_FALSE(lookup.partial_date("2000-01-01T06"));
  EXPECT_EQ(lookup.label("2000-01-01T06"), IndexLookup::List{1});
}

TEST_F(IndexLookupTest, HostileCountsAreNoDates) {
  MemoryData hostile;
  hostile
      .index<std::int64_t>("days", "<i8", {INT64_MIN, INT64_MAX, 0, INT64_MIN + 1},
                           {{"units", "days since 2000-01-01"}, {"calendar", "360_day"}})
      .index<double>("far", "<f8", {NAN, INFINITY, 1e300, 0.5},
                     {{"units", "months since 2000-01-01"}, {"calendar", "360_day"}})
      .index<std::int64_t>("gregorian", "<i8", {INT64_MAX, INT64_MIN + 1, 0},
                           {{"units", "days since 2000-01-01"}});
  const auto times = hostile.dataset();
  for (const auto& [dim, at] :
       {std::pair("days", 2), std::pair("far", 3), std::pair("gregorian", 2)}) {
    const IndexLookup lookup(*times, dim, "");
    EXPECT_EQ(lookup.label("2000"), IndexLookup::List{at}) << dim;
    EXPECT_EQ(lookup.nearest("1999", std::nullopt), at) << dim;
    EXPECT_THAT(lookup.extent(), HasSubstr("goes from ")) << dim;
  }
}

}  // namespace index_lookup_test
}  // namespace batchfs
