#include "engine/view/rows/held_lists.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace held_lists_test {

constexpr std::int64_t kSize = 100'000;
const std::string kSplit = R"(, "split": {"blocks": {"x": 10}, "fractions": {"a": 0.5, "b": 0.5}})";

/// Bytes that a view of a long dimension keeps.
std::uint64_t held(const std::string& keys) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {kSize}, {1000});
  ViewOptions options;
  if (keys.find("split") != std::string::npos) options.part = "a";
  return held_by(*View::parse(data.dataset(), R"({"window": {"x": 1}, "batch": 10)" + keys + "}",
                              "v", "test", options));
}

TEST(HeldLists, AWholeDimensionTakesNone) { EXPECT_EQ(held(""), 0U); }

TEST(HeldLists, StartsThatAreLeft) { EXPECT_GE(held(kSplit), kSize / 2 * 8); }

TEST(HeldLists, PositionsThatAreSelectedOneByOne) {
  std::string list;
  for (int i = 0; i < 1000; ++i) list += (i > 0 ? ",\"#" : "\"#") + std::to_string(2 * i) + "\"";
  EXPECT_GE(held(R"(, "select": {"x": [)" + list + "]}"), 1000 * (8 + sizeof(SelectorPart)));
}

TEST(HeldLists, BoundsOfGroupsThatDiffer) {
  EXPECT_GT(held(kSplit + R"(, "order": {"shuffle": "block", "seed": 1})"), held(kSplit));
}

}  // namespace held_lists_test
}  // namespace batchfs
