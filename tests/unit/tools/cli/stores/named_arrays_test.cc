#include "tools/cli/stores/named_arrays.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace named_arrays_test {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NamedArrays, OfAViewAreItsVariablesFirst) {
  const Json view = parse_json(
      R"({"name": "v", "window": {"time": 2}, "select": {"level": ["#3", 500]},
          "tensors": {"x": {"variables": ["a", "/rain/:pr", "/:z"]}}, "variables": ["b"]})",
      "v");
  EXPECT_THAT(paths_in_view(view, "g"),
              ElementsAre("g/b", "g/a", "rain", "rain/pr", "z", "g/time", "g/level"));
  EXPECT_TRUE(paths_in_view(Json(3), "").empty());
  Json many = {{"variables", Json::array()}};
  for (int i = 0; i < 1000; ++i) many["variables"].push_back("v" + std::to_string(i));
  EXPECT_EQ(paths_in_view(many, "").size(), 128u);
}

TEST(NamedArrays, MakeAnotherHierarchy) {
  const auto store = std::make_shared<MemoryStore>();
  store->listable = false;
  store->set(".zgroup", R"({"zarr_format": 2})");
  store->set("a/.zarray", R"({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f4",
      "order": "C", "compressor": null, "fill_value": null, "filters": null})");
  OpenedStore opened;
  opened.store = store;
  opened.hierarchy = std::make_shared<const Hierarchy>(open_hierarchy(*store));
  opened.memory = 1 << 20;
  const auto before = opened.hierarchy;
  EXPECT_FALSE(find_named(opened, {"b"}));
  EXPECT_EQ(opened.hierarchy, before);
  EXPECT_TRUE(find_named(opened, {"a", "b"}));
  EXPECT_TRUE(opened.hierarchy->arrays.contains("a"));
  EXPECT_THAT(naming_advice(*opened.hierarchy), HasSubstr("--array PATH"));
  EXPECT_EQ(naming_advice(Hierarchy()), "");
}

}  // namespace named_arrays_test
}  // namespace batchfs
