#include "engine/view/split/part_mask.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace part_mask_test {

using testing::ElementsAre;

std::shared_ptr<const View> view(const std::string& split, const std::string& select = "") {
  const auto dataset = MemoryData()
                           .declare("v", "<f4", {"t", "z", "x"}, {8, 2, 6}, {4, 2, 6})
                           .declare("s", "<f4", {"x"}, {6}, {6})
                           .declare("h", "<f4", {"z"}, {2}, {2})
                           .dataset();
  return View::parse(dataset,
                     R"({"window": {"t": 1, "x": 1}, "batch": 1, "variables": ["v"])" + select +
                         R"(, "split": )" + split + "}",
                     "v", "f", {.part = "train"});
}

/// 1 for each element of the part, in the box that begins at `start`.
std::vector<int> kept(const VariableMask& mask, const Box& box,
                      const std::vector<std::vector<std::int64_t>>& indices) {
  std::vector<double> values(static_cast<std::size_t>(box.elements()), 0);
  const std::int64_t blanked = mask.blank(box, {indices.begin(), indices.end()}, values.data());
  std::vector<int> result;
  for (const double value : values) result.push_back(std::isnan(value) ? 0 : 1);
  EXPECT_EQ(std::count(result.begin(), result.end(), 0), blanked);
  return result;
}

TEST(PartMask, AlongTwoDimensionsOnlyTheBox) {
  const auto part = view(
      R"({"parts": {"train": "rest", "val": [{"t": {"from": "#2", "to": "#4"}, "x": {"from": "#3", "to": "#6"}}]}, "gap": {"t": 1}})");
  const PartMask mask(*part);
  EXPECT_THAT(mask.dims(), ElementsAre("t", "x"));
  const VariableMask of_v = mask.of({"t", "z", "x"});
  EXPECT_FALSE(of_v.is_whole());
  // Times 1 to 4 are within the gap; both levels.
  EXPECT_THAT(kept(of_v, {{0, 0, 2}, {3, 2, 2}}, {{0, 1, 2}, {0, 1}, {0, 1}}),
              ElementsAre(1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0));
  // Only inspected values become NaN.
  EXPECT_THAT(kept(of_v, {{1, 0, 2}, {2, 2, 2}}, {{1}, {0}, {0, 1}}),
              ElementsAre(1, 1, 1, 1, 1, 0, 1, 1));
  // Each x is in the part at some time.
  EXPECT_THAT(kept(mask.of({"x"}), {{0}, {6}}, {{0, 1, 2, 3, 4, 5}}),
              ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_TRUE(mask.of({"z"}).is_whole());
}

TEST(PartMask, FollowsTheSelection) {
  const auto part = view(R"({"parts": {"train": [{"x": ["#0", "#2"]}], "val": "rest"}})",
                         R"(, "select": {"x": ["#5", "#3", "#0"]})");
  const PartMask mask(*part);
  EXPECT_THAT(kept(mask.of({"x"}), {{0}, {6}}, {{0, 3, 5}}), ElementsAre(1, 1, 1, 0, 1, 1));
}

}  // namespace part_mask_test
}  // namespace batchfs
