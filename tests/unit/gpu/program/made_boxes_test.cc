#include "gpu/program/made_boxes.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs::gpu {
namespace made_boxes_test {

std::shared_ptr<const View> latitudes_view() {
  MemoryData data;
  data.declare("a", "<f4", {"time", "lat"}, {6, 3}, {1, 3})
      .index<double>("lat", "<f8", {60, 0, -60}, {{"units", "degrees_north"}});
  return View::parse(data.dataset(),
                     R"({"window": {"time": 1}, "batch": 4, "tensors": {"x":
          {"variables": ["a", {"make": "cos_latitude"}], "stack": "c"}}})",
                     "v", "v.json");
}

TEST(MadeBoxes, HoldTheValuesInGroups) {
  const auto view = latitudes_view();
  const BatchPlan plan = view->plan(0, 0);
  ASSERT_FALSE(plan.made.empty());
  for (const std::uint64_t group : {1u, 40u, 1u << 20}) {
    const auto groups = made_boxes(*view, plan, group);
    std::size_t boxes = 0;
    for (const MadeBoxes& each : groups) {
      std::vector<std::byte> bytes(each.bytes);
      write(each, bytes.data());
      for (const MadeBoxes::Box& box : each.boxes) {
        float values[3];
        std::memcpy(values, bytes.data() + box.begin, sizeof values);
        EXPECT_FLOAT_EQ(values[0], 0.5F);
        EXPECT_EQ(values[1], 1.0F);
        EXPECT_FLOAT_EQ(values[2], 0.5F);
        ++boxes;
      }
    }
    EXPECT_EQ(boxes, plan.made.size());
    if (group == 1) {
      EXPECT_EQ(groups.size(), boxes);
    } else if (group == 1 << 20) {
      EXPECT_EQ(groups.size(), 1u);
    }
  }
}

TEST(MadeBoxes, GoToTheirPlaceInEverySample) {
  const auto view = latitudes_view();
  const BatchPlan plan = view->plan(0, 0);
  const AssemblyTables tables(*view);
  const std::vector<std::uint64_t> tensors{512};
  GatherPlan gathers;
  for (const MadeBoxes& each : made_boxes(*view, plan, 1 << 20))
    add_made(gathers, tables, plan, each, 4096, tensors);
  std::uint64_t elements = 0;
  for (const Gather& row : gathers.gathers()) {
    elements += row.elements;
    EXPECT_TRUE(tables.conversions()[row.conversion].copies);
    EXPECT_FALSE(row.from_constants);
    EXPECT_GE(row.source, 4096u);
    EXPECT_GE(row.target, 512u + 3 * 4);  // the channel after the store's
  }
  EXPECT_EQ(elements, 4u * 3);
}

}  // namespace made_boxes_test
}  // namespace batchfs::gpu
