#include "engine/dataset/joined/axis_join.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace axis_join_test {

using testing::HasSubstr;
using Pick = JoinRule::Pick;

JoinAxis axis(const std::string& source, const std::vector<double>& labels) {
  return {source, MemoryData().index<double>("x", "<f8", labels).dataset(), "x"};
}
JoinAxis times(const std::string& source, const std::vector<std::int64_t>& hours,
               const std::string& calendar = "standard") {
  return {source,
          MemoryData()
              .index<std::int64_t>("x", "<i8", hours,
                                   {{"units", "hours since 2000-01-01"}, {"calendar", calendar}})
              .dataset(),
          "x"};
}

std::vector<std::int64_t> all(const Positions& positions) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < positions.size(); ++i) result.push_back(positions[i]);
  return result;
}
std::vector<std::int64_t> joined(const std::vector<double>& anchor, const std::vector<double>& own,
                                 const JoinRule& rule) {
  return all(AxisJoin(axis("a", anchor), axis("b", own), rule, "join").positions());
}
std::string refusal(const JoinAxis& anchor, const JoinAxis& own, const JoinRule& rule = {}) {
  return error_of([&] { AxisJoin(anchor, own, rule, "sources.b.join.x"); }).why();
}

TEST(AxisJoin, FindsEqualLabelsWhereverTheyAre) {
  EXPECT_EQ(joined({1, 2, 3, 4}, {4, 3, 1}, {}), (std::vector<std::int64_t>{2, -1, 1, 0}));
}

TEST(AxisJoin, PicksNeighboursWithinTheTolerance) {
  const std::vector<double> anchor{0, 1, 2, 3.5, 9}, own{4, 1, 3};
  EXPECT_EQ(joined(anchor, own, {.pick = Pick::last}), (std::vector<std::int64_t>{-1, 1, 1, 2, 0}));
  EXPECT_EQ(joined(anchor, own, {.pick = Pick::next}), (std::vector<std::int64_t>{1, 1, 2, 0, -1}));
  EXPECT_EQ(joined(anchor, own, {.pick = Pick::nearest}),
            (std::vector<std::int64_t>{1, 1, 2, 0, 0}))
      << "of two as far away the larger";
  EXPECT_EQ(joined(anchor, own, {.pick = Pick::last, .distance = 0.5}),
            (std::vector<std::int64_t>{-1, 1, -1, 2, -1}));
  EXPECT_EQ(joined({1.0001, 2}, {1, 3}, {.distance = 0.001}), (std::vector<std::int64_t>{0, -1}));
}

TEST(AxisJoin, LooksShiftedTimesUpAmongTheSourcesOwn) {
  const AxisJoin join(times("a", {0, 6, 12}), times("b", {0, 3, 5, 6, 9}), {}, "join");
  constexpr std::int64_t kHour = 3'600'000'000'000;
  EXPECT_EQ(all(join.positions()), (std::vector<std::int64_t>{0, 3, -1}));
  EXPECT_EQ(all(join.shifted(3 * kHour)), (std::vector<std::int64_t>{1, 4, -1}));
  EXPECT_EQ(all(join.shifted(-kHour)), (std::vector<std::int64_t>{-1, 2, -1}));
  EXPECT_THAT(error_of([&] { join.shifted(99 * kHour); }).why(), HasSubstr("no label is in both"));
  EXPECT_EQ(all(composed(join.positions(), Positions::list({2, 1, 0}))),
            (std::vector<std::int64_t>{-1, 3, 0}));
  EXPECT_TRUE(composed(join.positions(), Positions::one(1)).drops_dim());
  EXPECT_EQ(composed(join.positions(), Positions::one(1))[0], 3);
}

TEST(AxisJoin, CellsOfAFinerGridComeInTheDirectionOfTheFirst) {
  const JoinRule twice{.ratio = 2};
  EXPECT_EQ(joined({1, 3, 5}, {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}, twice),
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(joined({5, 3, 1}, {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}, twice),
            (std::vector<std::int64_t>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(joined({1, 3, 5}, {4.5, 3.5, 2.5, 1.5}, twice),
            (std::vector<std::int64_t>{-1, -1, 2, 1, -1, -1}))
      << "half a cell is none";
  const AxisJoin hours(times("a", {0, 6}), times("b", {0, 3, 6, 9}), twice, "join");
  EXPECT_EQ(all(hours.positions()), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(all(composed(hours.positions(), Positions::list({1, 0}), 2)),
            (std::vector<std::int64_t>{2, 3, 0, 1}));
  EXPECT_THAT(refusal(axis("a", {1, 3, 5}), axis("b", {0.5, 1.5, 2.4, 3.4, 4.5, 5.5}), twice),
              HasSubstr("the grids do not nest: in the cell of 'x' of 'a' at position 1"));
  EXPECT_THAT(refusal(axis("a", {1, 3, 6}), axis("b", {1}), twice),
              HasSubstr("not evenly spaced at position 1"));
}

JoinAxis longitudes(const std::string& source, const std::vector<double>& labels) {
  return {source,
          MemoryData().index<double>("x", "<f8", labels, {{"units", "degrees_east"}}).dataset(),
          "x"};
}

TEST(AxisJoin, LongitudesOfTwoConventionsNameThePeriod) {
  const JoinAxis east = longitudes("a", {0, 90, 180, 270}), west = axis("b", {-180, -90, 0, 90});
  EXPECT_EQ(all(AxisJoin(east, west, {.period = 360}, "").positions()),
            (std::vector<std::int64_t>{2, 3, 0, 1}));
  EXPECT_THAT(refusal(east, west),
              HasSubstr("2 of 4 labels match, and 4 on a circle; write \"join\": {\"x\": "
                        "{\"period\": 360}}"));
  EXPECT_THAT(refusal(east, west, {.pick = Pick::nearest, .distance = 1, .pads = true}),
              HasSubstr("{\"x\": {\"pick\": \"nearest\", \"tolerance\": 1.0, \"period\": 360, "
                        "\"missing\": \"pad\"}}"));
  EXPECT_THAT(
      refusal(longitudes("a", {45, 135, 225, 315}),
              axis("b", {-157.5, -112.5, -67.5, -22.5, 22.5, 67.5, 112.5, 157.5}), {.ratio = 2}),
      HasSubstr("2 of 4 labels match, and 4 on a circle"));
  EXPECT_NO_THROW(AxisJoin(longitudes("a", {0, 90}), axis("b", {90, 180}), {}, ""))
      << "no more match on a circle";
  EXPECT_THAT(refusal(times("a", {0}), times("b", {0}), {.period = 360}),
              HasSubstr("a period is of numbers"));
}

TEST(AxisJoin, CellsOfACoarserGridAreRepeated) {
  const AxisJoin days(times("a", {0, 6, 18, 24, 48}), times("b", {0, 24}), {.coarser = 4}, "join");
  EXPECT_EQ(all(days.positions()), (std::vector<std::int64_t>{0, 0, 0, 1, -1}));
  EXPECT_EQ(days.ratio(), 1);
  constexpr std::int64_t kHour = 3'600'000'000'000;
  EXPECT_EQ(all(days.shifted(6 * kHour)), (std::vector<std::int64_t>{0, 0, 1, 1, -1}));
  EXPECT_THAT(refusal(axis("a", {0.5, 1.5, 2.4}), axis("b", {1, 3}), {.coarser = 2}),
              HasSubstr("sources.b.join.x: the grids do not nest: 'x' of 'a' at position 2"));
}

TEST(AxisJoin, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(
      refusal(axis("a", {1, 2}), axis("b", {7, 9})),
      "sources.b.join.x: no label is in both: 'x' of 'a' goes from 1.0 to 2.0, 'x' of 'b' from "
      "7.0 to 9.0");
  EXPECT_THAT(refusal(axis("a", {1, 2}), axis("b", {2, 1, 2})),
              HasSubstr("'x' of 'b' has the label 2.0 twice, at positions 0 and 2"));
  EXPECT_THAT(refusal(axis("a", {1, 1}), axis("b", {1})), HasSubstr("'x' of 'a' has the label"));
  EXPECT_NO_THROW(AxisJoin(axis("a", {1, 1}), axis("b", {1}), {.pick = Pick::last}, ""));
  EXPECT_THAT(refusal(times("a", {0}), axis("b", {0})),
              HasSubstr("holds numbers, and 'x' of 'a' holds times"));
  EXPECT_THAT(refusal(times("a", {0}), times("b", {0}, "360_day")),
              HasSubstr("'x' of 'b' is of the calendar 360_day"));
  EXPECT_THAT(refusal(times("a", {0}), times("b", {0}), {.pick = Pick::last, .distance = 1}),
              HasSubstr("is a length of time"));
  EXPECT_THAT(refusal(axis("a", {0}), axis("b", {0}), {.pick = Pick::last, .duration = 1}),
              HasSubstr("the tolerance of numbers is a number"));
}

}  // namespace axis_join_test
}  // namespace batchfs
