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
        .add<char>("name", "|S2", {"name"}, {2}, {'a', 'b', 'c', 'd'})
        .declare("v", "<f4", {"plain"}, {10}, {10});
    dataset = data.dataset();
  }
  std::int64_t nearest(const char* dim, const char* text,
                       std::optional<std::string> tolerance = std::nullopt) const {
    return IndexLookup(*dataset, dim, "").nearest(text, tolerance);
  }
  static std::vector<IndexLookup::List> found(const IndexLookup& lookup,
                                              const std::vector<std::string>& texts) {
    std::vector<IndexLookup::List> lists;
    for (const IndexLookup::LabelPositions& label : lookup.labels(texts)) {
      lists.emplace_back();
      for (std::int64_t i = 0; i < label.positions.size(); ++i)
        lists.back().push_back(label.positions[i]);
    }
    return lists;
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

TEST_F(IndexLookupTest, LabelsAreFoundInTheOrderInWhichTheyAreAskedFor) {
  using Lists = std::vector<IndexLookup::List>;
  EXPECT_EQ(found(IndexLookup(*dataset, "x", ""), {"20", "0", "20", "-0.0"}),
            (Lists{{3}, {0}, {3}, {0}}));
  EXPECT_EQ(found(IndexLookup(*dataset, "name", ""), {"cd", "ab", "cd"}), (Lists{{1}, {0}, {1}}));
  EXPECT_EQ(found(IndexLookup(*dataset, "time", ""),
                  {"2000-01-01T12", "2000", "2000-01-01", "2000-01-01T00:00:00", "2000-01"}),
            (Lists{{2}, {0, 1, 2}, {0, 1, 2}, {0}, {0, 1, 2}}));
  EXPECT_TRUE(IndexLookup(*dataset, "plain", "").labels({}).empty());
}

TEST_F(IndexLookupTest, TheFirstLabelThatIsNotThereIsNamed) {
  const struct {
    const char* dim;
    std::vector<std::string> texts;
    const char* says;
  } cases[] = {
      {"x", {"10", "12", "13"}, "x: no '12' in 'x', which goes from 0.0 to 40.0; the nearest"},
      {"x", {"nan"}, "no 'nan' in 'x'"},
      {"name", {"ab", "ac"}, "no 'ac' in 'name'"},
      {"time", {"2000", "2001-01"}, "no '2001-01' in 'time'"}};
  for (const auto& c : cases)
    EXPECT_THAT(error_of([&] { IndexLookup(*dataset, c.dim, "").labels(c.texts); }).why(),
                HasSubstr(c.says));
}

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
  EXPECT_EQ(found(lookup, {"2000-01-01T06"}), (std::vector<IndexLookup::List>{{1}}));
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
    EXPECT_EQ(found(lookup, {"2000"}), (std::vector<IndexLookup::List>{{at}})) << dim;
    EXPECT_EQ(lookup.nearest("1999", std::nullopt), at) << dim;
    EXPECT_THAT(lookup.extent(), HasSubstr("goes from ")) << dim;
  }
}

}  // namespace index_lookup_test
}  // namespace batchfs
