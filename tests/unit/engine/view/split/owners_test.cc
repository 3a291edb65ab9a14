#include "engine/view/split/owners.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "engine/view/order/order.h"

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace owners_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Dataset> data() {
  return MemoryData()
      .declare("v", "<f4", {"time", "lat"}, {20, 6}, {4, 6})
      .index("time", "<i4", counting<std::int32_t>(20))
      .index<std::int32_t>("lat", "<i4", {0, 10, 20, 30, 40, 50})
      .dataset();
}

SplitOwners owners(const std::string& split) {
  const std::string text =
      R"({"batch": 1, "window": {"time": 1, "lat": 1}, "split": )" + split + "}";
  const auto view = View::parse(data(), text, "v", "file.json", {.first_part = true});
  SplitOwners result;
  visit_windows(*view, [&](const RestrictedView& restricted, const ViewScan&) {
    result =
        find_owners(restricted, *view->spec().split, split_axes(restricted, *view->spec().split));
  });
  return result;
}

TEST(SplitOwners, FirstRegionsThenTheRest) {
  const SplitOwners found = owners(
      R"({"parts": {"a": "rest", "b": [{"time": {"from": 5, "to": 9}, "lat": {"from": 30}}],
                    "c": [{"time": {"from": 10}}]}})");
  EXPECT_THAT(found.shape, ElementsAre(3, 2));
  EXPECT_THAT(found.parts, ElementsAre(0, 0, 0, 1, 2, 2));
}

TEST(SplitOwners, WithoutARestSomePositionsHaveNone) {
  const SplitOwners found = owners(R"({"parts": {"b": [{"time": {"from": 5, "to": 9}}]}})");
  EXPECT_THAT(found.parts, ElementsAre(SplitOwners::kNone, 0, SplitOwners::kNone));
}

TEST(SplitOwners, OverlappingRegionsNameTheFirstPosition) {
  EXPECT_THAT(
      error_of([] {
        owners(R"({"parts": {"a": [{"time": {"from": 0, "to": 9}}, {"lat": {"from": 40}}],
                             "b": [{"time": {"from": 8, "to": 12}, "lat": [0, 10]}]}})");
      }).why(),
      HasSubstr("split.parts.b[0]: overlaps split.parts.a[0]: they share 4 positions, the first at "
                "time 8, lat 0"));
}

TEST(SplitOwners, FractionsAreExact) {
  const SplitOwners found =
      owners(R"({"blocks": {"time": 2}, "fractions": {"a": 0.65, "b": 0.2, "c": 0.15}})");
  // 6.5, 2 and 1.5 of 10 blocks: the tie goes to the earlier part.
  EXPECT_EQ(std::count(found.parts.begin(), found.parts.end(), 0), 7);
  EXPECT_EQ(std::count(found.parts.begin(), found.parts.end(), 1), 2);
  EXPECT_EQ(std::count(found.parts.begin(), found.parts.end(), 2), 1);
  EXPECT_THAT(error_of([] {
                owners(R"({"blocks": {"time": 10}, "fractions": {"a": 0.9, "b": 0.1}})");
              }).why(),
              HasSubstr("split.fractions.b: 0.1 of 2 blocks is none"));
}

TEST(SplitOwners, FoldsNeedAsManyBlocks) {
  const SplitOwners found = owners(R"({"blocks": {"time": 4}, "folds": 5})");
  EXPECT_THAT(found.parts, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(error_of([] { owners(R"({"blocks": {"time": 4}, "folds": 6})"); }).why(),
              HasSubstr("split.folds: 6 folds of 5 blocks; write at most 5"));
}

TEST(SplitOwners, AHashDependsOnTheTextAlone) {
  EXPECT_NE(text_number(0, "2016"), text_number(0, "2017"));
  EXPECT_NE(text_number(0, "2016"), text_number(1, "2016"));
  EXPECT_EQ(text_number(5, "a"), mix_bits(mix_bits(5 + UINT64_C(0x9e3779b97f4a7c15)) + 'a' +
                                          UINT64_C(0x9e3779b97f4a7c15)));
}

TEST(SplitOwners, TooManyCellsAreRefused) {
  const auto wide =
      MemoryData().declare("v", "<f4", {"x", "y"}, {20000, 20000}, {100, 100}).dataset();
  EXPECT_THAT(error_of([&] {
                View::parse(wide,
                            R"({"window": {"x": 1, "y": 1}, "split": {"blocks": {"x": 1, "y": 1},
                                      "folds": 2}})",
                            "v", "f", {.first_part = true});
              }).why(),
              HasSubstr("split.blocks: the parts are cut into more than 16777216 pieces"));
}

}  // namespace owners_test
}  // namespace batchfs
