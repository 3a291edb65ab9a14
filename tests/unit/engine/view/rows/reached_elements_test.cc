#include "engine/view/rows/reached_elements.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "engine/view/list/sample_starts.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace reached_elements_test {

using testing::ElementsAre;
using testing::IsEmpty;

std::shared_ptr<const Dataset> dataset() {
  std::vector<float> land(56);
  for (std::size_t i = 0; i < land.size(); ++i) land[i] = i * i % 11 < 4 ? 1 : 0;
  return MemoryData()
      .declare("v", "<f4", {"t", "y", "x"}, {5, 7, 8}, {2, 3, 5})
      .declare("s", "<f4", {"x", "y"}, {8, 7}, {8, 7})
      .declare("u", "<f4", {"t", "x"}, {5, 8}, {5, 8})
      .add<float>("land", "<f4", {"y", "x"}, {7, 8}, land)
      .dataset();
}

/// C-order numbers of the elements that are reached.
std::set<std::int64_t> reached_of(const View& view, std::uint32_t variable) {
  const Reached reached =
      reached_by_samples(view, variable, sample_starts(scan_of(view), *view.dataset()));
  const ReachedChoices choices(reached);
  const Dims shape = view.variables()[variable]->array->shape();
  std::set<std::int64_t> result;
  const auto visit = [&](auto&& self, std::size_t d, std::int64_t element,
                         std::int64_t choice) -> void {
    if (d == shape.size()) {
      if (choices.contains(static_cast<std::size_t>(choice))) result.insert(element);
      return;
    }
    for (std::int64_t i = 0; i < reached.positions[d].size(); ++i)
      self(self, d + 1, element * shape[d] + reached.positions[d][i],
           choice + i * choices.steps()[d]);
  };
  visit(visit, 0, 0, 0);
  return result;
}

TEST(ReachedElements, AreThoseThatBatchesHold) {
  const auto data = dataset();
  for (
      const char* rest :
      {R"("window": {"t": 1, "y": 2, "x": 2}, "samples": {"mask": {"variable": "land", "fraction": [0.5, 1]}})",
       R"("window": {"x": {"size": 3, "stride": 2, "wrap": true}, "t": 1, "y": {"size": 2, "stride": 1}},
           "samples": {"mask": {"variable": "land", "fraction": [0.35, 1]}})",
       R"("window": {"t": 1, "y": {"size": 1, "stride": 3}, "x": {"size": 1, "stride": 3}},
           "samples": {"mask": {"variable": "land"}, "where": {"t": ["#1", "#4"]}})",
       R"("window": {"t": 1, "y": 1, "x": 1}, "select": {"x": ["#6", "#1", "#1", "#0"], "y": ["#5", "#2", "#4"]},
           "samples": {"mask": {"variable": "land"}})",
       R"("window": {"t": 1, "y": 2, "x": 2},
           "split": {"parts": {"train": [{"y": {"from": "#0", "to": "#3"}, "x": {"from": "#2", "to": "#7"}},
                                         {"t": {"from": "#3", "to": "#5"}, "x": {"from": "#0", "to": "#2"}}],
                               "val": "rest"}})"}) {
    const auto view = View::parse(
        data, std::string(R"({"variables": ["v", "s", "u"], "batch": 1000, )") + rest + "}", "view",
        "file.json", {.first_part = true});
    const auto held = assembled(*view, 0, 0);
    for (std::uint32_t v = 0; v < 3; ++v)
      EXPECT_EQ(reached_of(*view, v), std::set<std::int64_t>(held[v].begin(), held[v].end()))
          << rest << " variable " << v;
  }
}

TEST(ReachedElements, OfTensorsWithOtherOffsetsArePairs) {
  const auto view = parse_view(dataset(),
                               R"({"window": {"t": 1, "y": 1, "x": 1}, "batch": 1000,
          "samples": {"where": {"t": ["#1"], "y": ["#2", "#3"]}},
          "tensors": {"a": {"variables": ["v"]}, "b": {"variables": ["v"], "offsets": {"t": [2], "y": [3]}}}})");
  std::set<std::int64_t> held;
  for (const auto& tensor : assembled(*view, 0, 0)) held.insert(tensor.begin(), tensor.end());
  EXPECT_EQ(reached_of(*view, 0), held);
}

TEST(ReachedElements, OnlyDimensionsThatDependOnEachOtherAreLookedUp) {
  const auto view = parse_view(
      dataset(), R"({"variables": ["v", "s", "u"], "window": {"t": 1, "y": 1, "x": 1}, "batch": 1,
                     "samples": {"mask": {"variable": "land"}}})");
  const StartTable starts = sample_starts(scan_of(*view), *view->dataset());
  const Reached of_v = reached_by_samples(*view, 0, starts);
  ASSERT_NE(of_v.elements, nullptr);
  EXPECT_THAT(of_v.elements->dims(), ElementsAre(1, 2));
  EXPECT_EQ(of_v.positions[0].size(), 5);
  EXPECT_EQ(reached_by_samples(*view, 2, starts).elements, nullptr);
  const std::vector<std::size_t> columns{0, 2};
  EXPECT_EQ(reached_by_samples(*view, 0, starts, &columns).elements, nullptr);
  const std::vector<bool> all = of_v.elements->at({{0, 3}, {0, 1, 2}});
  const std::vector<bool> row = of_v.elements->at({{3}, {2, 1}});
  EXPECT_THAT(row, ElementsAre(all[5], all[4]));
}

}  // namespace reached_elements_test
}  // namespace batchfs
