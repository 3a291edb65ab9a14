#include "engine/zarr/named_nodes.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace named_nodes_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 1 << 20;
constexpr const char* kGroup = R"({"zarr_format": 3, "node_type": "group"})";

std::string array_of(const std::string& dims) {
  return R"({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
  "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "dimension_names": [)" +
         dims + R"(], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})";
}

struct NamedNodes : testing::Test {
  NamedNodes() {
    store.listable = false;
    store.set("zarr.json", kGroup);
    store.set("t/zarr.json", array_of("\"x\""));
    store.set("x/zarr.json", array_of("\"x\""));
    store.set("g/zarr.json", kGroup);
    store.set("g/h/zarr.json", array_of("null"));
    store.set("bad/zarr.json", R"({"node_type": "thing"})");
  }
  std::vector<std::string> arrays() const {
    std::vector<std::string> paths;
    for (const auto& [path, array] : hierarchy.arrays) paths.push_back(path);
    return paths;
  }
  MemoryStore store;
  Hierarchy hierarchy;
};

TEST_F(NamedNodes, AreFoundWithTheirCoordinates) {
  hierarchy = open_hierarchy(store);
  EXPECT_FALSE(hierarchy.complete);
  EXPECT_THAT(arrays(), ElementsAre());
  const std::string before = hierarchy.snapshot_id;
  find_nodes(store, hierarchy, {"nothing", "../x", "/x", "", "g//h", "t/c"}, kMemory);
  EXPECT_EQ(hierarchy.snapshot_id, before);
  EXPECT_EQ(store.asked.count("../x/zarr.json"), 0u);
  find_nodes(store, hierarchy, {"t", "g/h", "bad"}, kMemory);
  EXPECT_THAT(arrays(), ElementsAre("g/h", "t", "x"));
  EXPECT_FALSE(hierarchy.groups.at("g").implicit);
  EXPECT_NE(hierarchy.snapshot_id, before);
  ASSERT_EQ(hierarchy.problems.size(), 1u);
  EXPECT_EQ(hierarchy.problems[0].first, "bad/zarr.json");
  EXPECT_THAT(hierarchy.problems[0].second, HasSubstr("node_type"));
  EXPECT_EQ(hierarchy.array("t").source, "t/zarr.json");
  // Known nodes are not requested again, nor are nodes below an array.
  store.asked.clear();
  find_nodes(store, hierarchy, {"t", "t/c"}, kMemory);
  EXPECT_TRUE(store.asked.empty());
}

TEST_F(NamedNodes, AreBounded) {
  hierarchy = open_hierarchy(store);
  std::vector<std::string> paths;
  for (int i = 0; i < 2000; ++i) paths.push_back("n" + std::to_string(i));
  store.asked.clear();
  find_nodes(store, hierarchy, paths, kMemory);
  EXPECT_EQ(store.asked.size(), 512u);
  store.failing.insert("t/zarr.json");
  EXPECT_THROW(find_nodes(store, hierarchy, {"t"}, kMemory), Error);
}

TEST_F(NamedNodes, OfACompleteHierarchyAreThereAlready) {
  store.listable = true;
  hierarchy = open_hierarchy(store);
  EXPECT_TRUE(hierarchy.complete);
  store.asked.clear();
  find_nodes(store, hierarchy, {"more"}, kMemory);
  EXPECT_TRUE(store.asked.empty());
}

TEST_F(NamedNodes, OfAnImageAreItsLevelsAndLabels) {
  const std::string axes = R"("axes": ["x"], "datasets": [{"path": "0"}])";
  const auto group = [](const std::string& ome) {
    return R"({"zarr_format": 3, "node_type": "group", "attributes": {)" + ome + "}}";
  };
  const std::string image = group(R"("multiscales": [{"version": "0.3", )" + axes + "}]");
  store.set("zarr.json", image);
  store.set("0/zarr.json", array_of("null"));
  store.set("labels/zarr.json", group(R"("labels": ["cells", "cells", "../.."])"));
  store.set("labels/cells/zarr.json", image);
  store.set("labels/cells/0/zarr.json", array_of("null"));
  hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(), ElementsAre("0"));
  ASSERT_EQ(hierarchy.ome.problems.size(), 1u);
  EXPECT_THAT(hierarchy.ome.problems[0].second, HasSubstr("'../..' is not the path of a node"));
  store.set("labels/zarr.json", group(R"("labels": ["cells", "cells"])"));
  hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(), ElementsAre("0", "labels/cells/0"));
  EXPECT_EQ(hierarchy.array("0").axes.at(0).name, "x");
  EXPECT_EQ(store.asked.count("labels/cells/labels/zarr.json"), 0u);
}

}  // namespace named_nodes_test
}  // namespace batchfs
