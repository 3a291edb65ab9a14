#include "engine/view/split/part_boxes.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace part_boxes_test {

using testing::HasSubstr;
using testing::Pair;

/// Days 0 to 9, then 20 to 29; longitudes around the globe.
std::shared_ptr<const Dataset> data() {
  std::vector<std::int64_t> days;
  for (std::int64_t i = 0; i < 20; ++i) days.push_back(i < 10 ? i : i + 10);
  return MemoryData()
      .declare("v", "<f4", {"time", "lon"}, {20, 8}, {4, 8})
      .index("time", "<M8[D]", days)
      .index<std::int32_t>("lon", "<i4", {0, 45, 90, 135, 180, 225, 270, 315},
                           {{"units", "degrees_east"}})
      .dataset();
}

template <class Use>
void with_boxes(const std::string& split, const std::string& part, Use&& use,
                const std::string& window = R"("time": 1)") {
  const std::string text = R"({"window": {)" + window + R"(}, "split": )" + split + "}";
  const auto view = View::parse(data(), text, "v", "file.json", {.part = part});
  visit_windows(*view, [&](const RestrictedView& restricted, const ViewScan&) {
    use(PartBoxes(restricted, *view->spec().split, view->spec().part));
  });
}

PartVerdict verdict(const PartBoxes& boxes, std::int64_t first, std::int64_t end) {
  const auto runs = boxes.runs(0, 1, [&](std::int64_t) { return std::pair(first, end); });
  return boxes.verdict({&runs.at(0)});
}

TEST(PartBoxes, AGapOfTimesLooksAtLabels) {
  const std::string split =
      R"({"parts": {"train": "rest", "val": [{"time": {"from": "1970-01-05", "to": "1970-01-08"}}]},
          "gap": {"time": "1d"}})";
  with_boxes(split, "train", [](const PartBoxes& boxes) {
    EXPECT_THAT(boxes.widened(0, 5, 6), Pair(4, 7));
    EXPECT_THAT(boxes.widened(0, 9, 10), Pair(8, 10));  // the next label is ten days later
    EXPECT_EQ(verdict(boxes, 0, 3), PartVerdict::sample);
    EXPECT_EQ(verdict(boxes, 0, 4), PartVerdict::in_gap);
    EXPECT_EQ(verdict(boxes, 0, 5), PartVerdict::straddling);
    EXPECT_EQ(verdict(boxes, 4, 8), PartVerdict::outside);
    EXPECT_EQ(verdict(boxes, 8, 9), PartVerdict::in_gap);
    EXPECT_EQ(verdict(boxes, 9, 20), PartVerdict::sample);
  });
  with_boxes(split, "val", [](const PartBoxes& boxes) {
    EXPECT_EQ(verdict(boxes, 4, 8), PartVerdict::sample);  // it yields to nothing
    EXPECT_EQ(verdict(boxes, 3, 5), PartVerdict::straddling);
  });
}

TEST(PartBoxes, OnACircleFootprintsAndGapsPassOverTheEnd) {
  with_boxes(
      R"({"parts": {"a": [{"lon": [0, 315, 180]}], "b": [{"lon": [90]}]}, "gap": {"lon": 2}})", "a",
      [](const PartBoxes& boxes) {
        EXPECT_EQ(verdict(boxes, 7, 9), PartVerdict::in_gap);  // 0 is two from 90
        EXPECT_EQ(verdict(boxes, 7, 8), PartVerdict::sample);
        EXPECT_EQ(verdict(boxes, -1, 0), PartVerdict::sample);
        EXPECT_EQ(verdict(boxes, 4, 5), PartVerdict::in_gap);
        EXPECT_EQ(verdict(boxes, 6, 9), PartVerdict::straddling);
        EXPECT_EQ(verdict(boxes, 2, 20), PartVerdict::straddling);
      },
      R"("lon": {"size": 1, "wrap": true})");
}

TEST(PartBoxes, OfTwoPartsTheEarlierYields) {
  const std::string split =
      R"({"parts": {"a": [{"time": {"from": "#0", "to": "#5"}}], "b": [{"time": {"from": "#5", "to": "#9"}}]},
          "gap": {"time": 1}})";
  with_boxes(split, "a", [](const PartBoxes& boxes) {
    EXPECT_EQ(verdict(boxes, 4, 5), PartVerdict::in_gap);
    EXPECT_EQ(verdict(boxes, 3, 4), PartVerdict::sample);
  });
  with_boxes(split, "b", [](const PartBoxes& boxes) {
    EXPECT_EQ(verdict(boxes, 5, 6), PartVerdict::sample);
    EXPECT_EQ(verdict(boxes, 8, 9), PartVerdict::sample);  // next to positions without a part
  });
}

TEST(PartBoxes, AGapOfTimesNeedsAnOrderedLine) {
  const auto shuffled = MemoryData()
                            .declare("v", "<f4", {"time"}, {4}, {4})
                            .index<std::int64_t>("time", "<M8[D]", {0, 2, 1, 3})
                            .dataset();
  EXPECT_THAT(error_of([&] {
                View::parse(shuffled,
                            R"({"window": {"time": 1}, "split": {"blocks": {"time": 1}, "folds": 2,
                                          "gap": {"time": "1d"}}})",
                            "v", "f", {.first_part = true});
              }).why(),
              HasSubstr("split.gap.time: a length of time needs labels in order, and 'time' has "
                        "1970-01-02T00:00:00 after 1970-01-03T00:00:00"));
}

}  // namespace part_boxes_test
}  // namespace batchfs
