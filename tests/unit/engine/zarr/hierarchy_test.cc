#include "engine/zarr/hierarchy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/json_text.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace hierarchy_test {

constexpr const char* kArray2 =
    R"({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f4", "order": "C",
  "compressor": null, "fill_value": null, "filters": null})";
constexpr const char* kGroup2 = R"({"zarr_format": 2})";
constexpr const char* kArray3 =
    R"({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}, "chunk_key_encoding": {"name": "default"},
  "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})";
constexpr const char* kGroup3 =
    R"({"zarr_format": 3, "node_type": "group", "attributes": {"title": "t"}})";

std::vector<std::string> arrays(const Hierarchy& hierarchy) {
  std::vector<std::string> paths;
  for (const auto& [path, array] : hierarchy.arrays) paths.push_back(path);
  return paths;
}

std::vector<std::string> groups(const Hierarchy& hierarchy) {
  std::vector<std::string> paths;
  for (const auto& [path, group] : hierarchy.groups)
    paths.push_back(path + (group.implicit ? " (implicit)" : ""));
  return paths;
}

std::string refusal(Store& store) {
  try {
    open_hierarchy(store);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using Problems = std::vector<std::pair<std::string, std::string>>;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HierarchyV2, IsFoundByListing) {
  MemoryStore store;
  store.set(".zgroup", kGroup2);
  store.set(".zattrs", R"({"title": "t"})");
  store.set("a/.zarray", kArray2);
  store.set("a/.zattrs", R"({"units": "K", "missing": NaN})");
  store.set("a/0", "data");
  store.set("g/.zgroup", kGroup2);
  store.set("g/b/.zarray", kArray2);
  store.set("g/b/0.0/.zarray", kArray2);  // below an array are chunks, whatever they are called
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_EQ(hierarchy.zarr_format, 2);
  EXPECT_FALSE(hierarchy.consolidated);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("a", "g/b"));
  EXPECT_THAT(groups(hierarchy), ElementsAre("", "g"));
  EXPECT_EQ(hierarchy.groups.at("").attributes["title"], "t");
  EXPECT_EQ(json_text(hierarchy.array("a").attributes["missing"]), "\"NaN\"");
  EXPECT_TRUE(hierarchy.problems.empty());
  EXPECT_THAT(hierarchy.children(""), ElementsAre("a", "g"));
  EXPECT_THAT(hierarchy.children("g"), ElementsAre("b"));
}

TEST(HierarchyV2, DirectoriesWithoutMetadataAreImplicitGroups) {
  MemoryStore store;
  store.set("x/y/a/.zarray", kArray2);
  store.set("x/readme.txt", "hello");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("x/y/a"));
  EXPECT_THAT(groups(hierarchy), ElementsAre(" (implicit)", "x (implicit)", "x/y (implicit)"));
}

TEST(HierarchyV2, TheRootMayBeAnArray) {
  MemoryStore store;
  store.set(".zarray", kArray2);
  store.set("0", "data");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), ElementsAre(""));
  EXPECT_THAT(groups(hierarchy), ElementsAre());
  EXPECT_EQ(hierarchy.array("").shape, (Dims{4}));
}

TEST(HierarchyV2, ConsolidatedMetadataIsAllThatIsRead) {
  MemoryStore store;
  store.set(".zmetadata",
            std::string(R"({"zarr_consolidated_format": 1, "metadata": {".zgroup": )") + kGroup2 +
                R"(, ".zattrs": {"title": "t"}, "g/.zgroup": )" + kGroup2 + R"(, "g/a/.zarray": )" +
                kArray2 + R"(, "g/a/.zattrs": {"units": "K"}, "h/b/.zarray": )" + kArray2 + "}}");
  store.set("other/.zarray", kArray2);
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_TRUE(hierarchy.consolidated);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("g/a", "h/b"));
  EXPECT_THAT(groups(hierarchy), ElementsAre("", "g", "h (implicit)"));
  EXPECT_EQ(hierarchy.array("g/a").attributes["units"], "K");
  EXPECT_EQ(hierarchy.groups.at("").attributes["title"], "t");
  EXPECT_EQ(store.reads.size(), 1u);
}

TEST(HierarchyV3, IsFoundByListing) {
  MemoryStore store;
  store.set("zarr.json", kGroup3);
  store.set("g/zarr.json", kGroup3);
  store.set("g/a/zarr.json", kArray3);
  store.set("g/a/c/0", "data");
  store.set("i/b/zarr.json", kArray3);
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_EQ(hierarchy.zarr_format, 3);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("g/a", "i/b"));
  EXPECT_THAT(groups(hierarchy), ElementsAre("", "g", "i (implicit)"));
  EXPECT_EQ(hierarchy.groups.at("g").attributes["title"], "t");
}

TEST(HierarchyV3, ConsolidatedMetadataIsAllThatIsRead) {
  MemoryStore store;
  store.set("zarr.json", std::string(R"({"zarr_format": 3, "node_type": "group", "attributes": {},
    "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"g": )") +
                             kGroup3 + R"(, "g/a": )" + kArray3 + "}}}");
  store.set("other/zarr.json", kArray3);
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_TRUE(hierarchy.consolidated);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("g/a"));
  EXPECT_THAT(groups(hierarchy), ElementsAre("", "g"));
  EXPECT_EQ(store.reads.size(), 1u);
}

TEST(HierarchyV3, ConsolidatedMetadataMayBeNull) {
  MemoryStore store;
  store.set("zarr.json",
            R"({"zarr_format": 3, "node_type": "group", "consolidated_metadata": null})");
  store.set("a/zarr.json", kArray3);
  EXPECT_THAT(arrays(open_hierarchy(store)), ElementsAre("a"));
}

TEST(HierarchyV3, TheRootMayBeAnArray) {
  MemoryStore store;
  store.set("zarr.json", kArray3);
  store.set("c/0", "data");
  EXPECT_THAT(arrays(open_hierarchy(store)), ElementsAre(""));
}

TEST(Hierarchy, WhatIsWrongWithOneNodeIsAProblemOfThatNode) {
  MemoryStore store;
  store.set(".zgroup", kGroup2);
  store.set("good/.zarray", kArray2);
  store.set("cut/.zarray", std::string_view(kArray2).substr(0, 40));
  store.set("wrong/.zarray", R"({"zarr_format": 2, "shape": "x"})");
  store.set("attributes/.zarray", kArray2);
  store.set("attributes/.zattrs", "[1]");
  store.set("group/.zgroup", kGroup2);
  store.set("group/.zattrs", "7");
  store.set("deep/.zarray", std::string(100000, '['));
  store.set("v3/zarr.json", R"({"zarr_format": 3, "node_type": "something"})");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("good"));
  EXPECT_EQ(hierarchy.problems,
            (Problems{{"attributes/.zarray", ".zattrs is not an object"},
                      {"cut/.zarray",
                       "not valid JSON at line 1, column 34: this string is not closed: "
                       "`{\"zarr_format\": 2, \"shape\": [4], ^\"chunks`"},
                      {"deep/.zarray", "the JSON is nested deeper than 64 levels"},
                      {"group/.zgroup", ".zattrs: expected an object"},
                      {"v3/zarr.json", "node_type: expected \"array\" or \"group\""},
                      {"wrong/.zarray", "shape: expected a list"}}));
}

TEST(Hierarchy, WhatIsWrongWithOneConsolidatedNodeIsAProblemOfThatNode) {
  MemoryStore store;
  store.set("zarr.json",
            std::string(
                R"({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"metadata": {
    "": )") + kArray3 +
                R"(, "../up": )" + kArray3 + R"(, "a//b": )" + kArray3 + R"(, "/abs": )" + kArray3 +
                R"(, "seven": 7, "good": )" + kArray3 + R"(, "good/below": )" + kArray3 +
                R"(, "good/group": )" + kGroup3 + "}}}");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("good"));
  EXPECT_THAT(groups(hierarchy), ElementsAre(""));
  EXPECT_EQ(hierarchy.problems,
            (Problems{{"zarr.json", "consolidated metadata of a node without a name"},
                      {"../up/zarr.json", "not a usable name"},
                      {"a//b/zarr.json", "not a usable name"},
                      {"/abs/zarr.json", "not a usable name"},
                      {"seven/zarr.json", "expected an object"},
                      {"good/below", "this node lies below an array"},
                      {"good/group", "this node lies below an array"}}));
}

TEST(Hierarchy, ANodeIsAnArrayOrAGroup) {
  MemoryStore store;
  store.set(".zmetadata", std::string(R"({"metadata": {"a/.zgroup": )") + kGroup2 +
                              R"(, "a/.zarray": )" + kArray2 + R"(, "../b/.zarray": )" + kArray2 +
                              R"(, "c/.zgroup": )" + kGroup2 + R"(, "c/.zattrs": [])" + "}}");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("a"));
  EXPECT_THAT(groups(hierarchy), ElementsAre(" (implicit)"));
  EXPECT_EQ(hierarchy.problems, (Problems{{"../b/.zarray", "not a usable name"},
                                          {"c/.zgroup", ".zattrs: expected an object"}}));
}

TEST(Hierarchy, RefusesWhatIsNoStore) {
  MemoryStore store;
  EXPECT_THAT(refusal(store), HasSubstr("not a Zarr store"));
  store.set("readme.txt", "hello");
  store.set("x/y/z", "hello");
  EXPECT_THAT(refusal(store), HasSubstr("not a Zarr store"));
  store.set("attributes.json", "{}");
  EXPECT_THAT(refusal(store), HasSubstr("an N5 store"));
  for (const char* folder : {"manifests", "snapshots", "refs"})
    store.set(std::string(folder) + "/A", "");
  EXPECT_THAT(refusal(store), HasSubstr("an Icechunk repository"));
}

TEST(Hierarchy, AReferenceSetIsNoStoreWithoutChunks) {
  MemoryStore store;
  store.set(".zmetadata", std::string(R"({"record_size": 100, "metadata": {".zgroup": )") +
                              kGroup2 + R"(, "a/.zarray": )" + kArray2 + "}}");
  EXPECT_THAT(refusal(store), HasSubstr("a kerchunk reference set (Parquet)"));
}

TEST(Hierarchy, SaysWhatIsWrongWithANodeThatCouldNotBeUsed) {
  MemoryStore store;
  store.set(".zgroup", R"({"zarr_format": 2})");
  store.set("g/t/.zarray", "{");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(hierarchy.problem_of("g/t"), HasSubstr("g/t/.zarray cannot be used: not valid JSON"));
  EXPECT_EQ(hierarchy.problem_of("t"), "");
  EXPECT_EQ(hierarchy.problem_of("g"), "");
}

TEST(Hierarchy, RefusesRootsThatCannotBeRead) {
  auto of = [](const char* key, std::string_view text) {
    MemoryStore store;
    store.set(key, text);
    return refusal(store);
  };
  EXPECT_EQ(of("zarr.json", ""),
            "not valid JSON at line 1, column 1: the file is empty: `^` (zarr.json)");
  EXPECT_EQ(of("zarr.json", "{\"zarr_format\": 3,"),
            "not valid JSON at line 1, column 19: the '{' of line 1 is not closed: "
            "`{\"zarr_format\": 3,^` (zarr.json)");
  EXPECT_EQ(of("zarr.json", "[]"), "expected an object (memory)");
  EXPECT_EQ(of("zarr.json", R"({"zarr_format": 3})"), "the key 'node_type' is missing (memory)");
  EXPECT_EQ(of("zarr.json", R"({"zarr_format": 3, "node_type": 7})"),
            "node_type: expected a string (memory)");
  EXPECT_EQ(of("zarr.json", R"({"zarr_format": 3, "node_type": "thing"})"),
            "node_type: expected \"array\" or \"group\" (zarr.json)");
  EXPECT_EQ(of("zarr.json", R"({"zarr_format": 4, "node_type": "group"})"),
            "zarr_format: expected 3 (zarr.json)");
  EXPECT_EQ(of("zarr.json", R"({"zarr_format": 3, "node_type": "group", "attributes": 7})"),
            "attributes: expected an object (zarr.json)");
  EXPECT_EQ(
      of("zarr.json",
         R"({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_encoding": "x"})"),
      "Zarr v3 from before the final specification is not supported (zarr.json)");
  EXPECT_EQ(
      of("zarr.json",
         R"({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"metadata": []}})"),
      "consolidated_metadata.metadata: expected an object (memory)");
  EXPECT_EQ(of(".zmetadata", "{}"), ".zmetadata: the key 'metadata' is missing (memory)");
  EXPECT_EQ(of(".zmetadata", R"({"metadata": 7})"),
            ".zmetadata.metadata: expected an object (memory)");
  EXPECT_EQ(of(".zarray", "{}"), "the key 'zarr_format' is missing (.zarray)");
}

TEST(Hierarchy, ABrokenZarrJsonBesideFormat2NamesBoth) {
  for (const char* broken : {"", "{", R"({"zarr_format": 3,)", "[]", R"({"zarr_format": 3})"})
    for (const char* name : {".zmetadata", ".zarray", ".zgroup"}) {
      MemoryStore store;
      store.set("zarr.json", broken);
      const std::string nodes =
          std::string(R"({"metadata": {".zgroup": )") + kGroup2 + R"(, "a/.zarray": )" + kArray2;
      store.set(name, name == std::string(".zmetadata") ? nodes + "}}"
                      : name == std::string(".zarray")  ? kArray2
                                                        : kGroup2);
      store.set("a/.zarray", kArray2);
      EXPECT_THAT(refusal(store), AllOf(HasSubstr("zarr.json is read before " + std::string(name)),
                                        HasSubstr("remove it to read format 2 (")))
          << broken;
      store.set("zarr.json", kGroup3);  // the reverse: format 3 is read
      store.set(name, broken);
      EXPECT_EQ(open_hierarchy(store).zarr_format, 3);
    }
  MemoryStore store;
  store.set(".zgroup", kGroup2);
  store.set("a/zarr.json", "{");
  store.set("a/.zarray", kArray2);
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), testing::IsEmpty());
  EXPECT_THAT(hierarchy.problem_of("a"), HasSubstr("zarr.json is read before .zarray"));
}

TEST(Hierarchy, AFailedReadIsNoMissingNode) {
  for (const char* key : {"zarr.json", ".zmetadata", "a/.zarray", "a/.zattrs", "a", ""}) {
    MemoryStore store;
    store.set(".zgroup", kGroup2);
    store.set("a/.zarray", kArray2);
    store.set("a/.zattrs", "{}");
    store.failing = {key};
    EXPECT_THAT(refusal(store), HasSubstr("the disk is on fire")) << key;
  }
}

TEST(Hierarchy, NamesTheNearestArray) {
  MemoryStore store;
  store.set("g/temperature/.zarray", kArray2);
  const Hierarchy hierarchy = open_hierarchy(store);
  auto of = [&](const char* path) -> std::string {
    try {
      hierarchy.array(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(of("g/temprature"), "no array 'g/temprature', did you mean 'g/temperature'?");
  EXPECT_EQ(of("g"), "'g' is a group, not an array");
  EXPECT_EQ(of(""), "'/' is a group, not an array");
}

TEST(Hierarchy, TheSnapshotChangesWithTheMetadata) {
  MemoryStore store;
  store.set("a/.zarray", kArray2);
  const std::string first = open_hierarchy(store).snapshot_id;
  EXPECT_EQ(open_hierarchy(store).snapshot_id, first);
  store.set("a/.zattrs", R"({"units": "K"})");
  const std::string second = open_hierarchy(store).snapshot_id;
  EXPECT_NE(second, first);
  store.set("b/.zarray", kArray2);
  EXPECT_NE(open_hierarchy(store).snapshot_id, second);
}

TEST(HierarchyLimits, PathsThatAreTooLongOrTooDeepAreProblems) {
  std::string deep = "a", deepest = "a", longest = std::string(200, 'x');
  for (int i = 0; i < 30'000; ++i) deep += "/a";
  for (int i = 0; i < 63; ++i) deepest += "/a";
  while (longest.size() < 4095)
    longest += "/" + std::string(std::min<std::size_t>(200, 4094 - longest.size()), 'x');
  MemoryStore store;
  Json nodes;
  for (const std::string& path : {deep, deepest, deepest + "/a", longest, longest + "x"})
    nodes[path] = Json::parse(kArray3);
  store.set("zarr.json", Json{{"zarr_format", 3},
                              {"node_type", "group"},
                              {"consolidated_metadata", {{"metadata", nodes}}}}
                             .dump());
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), testing::UnorderedElementsAre(deepest, longest));
  ASSERT_EQ(hierarchy.problems.size(), 3u);
  EXPECT_EQ(hierarchy.problems[0].second, "the path has 60001 bytes; at most 4095 are supported");
  EXPECT_EQ(hierarchy.problems[1].second, "the path has more than 64 levels");
  EXPECT_EQ(hierarchy.problems[2].second, "the path has 4096 bytes; at most 4095 are supported");
  EXPECT_LE(hierarchy.problems[0].first.size(), 1100u);
  EXPECT_LE(hierarchy.memory, 1u << 20);
}

TEST(HierarchyLimits, MetadataThatTakesMoreMemoryThanIsGivenIsRefused) {
  MemoryStore store;
  std::string attributes = "[0";
  for (int i = 0; i < 2'000'000; ++i) attributes += ",0";
  const std::string group =
      R"({"zarr_format": 3, "node_type": "group", "attributes": {"a": )" + attributes + "]}}";
  store.set("zarr.json", group);
  EXPECT_GT(open_hierarchy(store, 256 << 20).memory, 30u << 20);
  try {
    open_hierarchy(store, 1 << 20);
    ADD_FAILURE() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_THAT(
        error.what(),
        HasSubstr("takes more than 16.0 MB of memory; give more with --memory (zarr.json)"));
  }
  // Many small documents, too.
  MemoryStore many;
  std::string part = "[0";
  for (int i = 0; i < 100'000; ++i) part += ",0";
  for (int i = 0; i < 20; ++i)
    many.set("g" + std::to_string(i) + "/zarr.json",
             R"({"zarr_format": 3, "node_type": "group", "attributes": {"a": )" + part + "]}}");
  EXPECT_EQ(open_hierarchy(many, 256 << 20).groups.size(), 21u);
  EXPECT_THROW(open_hierarchy(many, 1 << 20), Error);
}

TEST(HierarchyLimits, AnArrayWithTooManyChunksToListIsFoundByItsMetadata) {
  MemoryStore store;
  store.set(".zgroup", kGroup2);
  store.set("a/.zarray", kArray2);
  store.set("a/.zattrs", R"({"units": "K"})");
  store.set("b/zarr.json", kArray3);
  store.set("c/x/.zarray", kArray2);
  store.overfull = {"a", "b", "c"};
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_THAT(arrays(hierarchy), ElementsAre("a", "b"));
  EXPECT_EQ(hierarchy.array("a").attributes["units"], "K");
  EXPECT_EQ(hierarchy.problems, (Problems{{"c", "the directory has more than 3 entries"}}));
}

TEST(HierarchyLimits, OfAttributesOfAnArrayAndAGroupAtOnePathTheArrayHasThem) {
  MemoryStore store;
  store.set(
      ".zmetadata",
      std::string(
          R"({"metadata": {".zgroup": {"zarr_format": 2}, "a/.zgroup": {"zarr_format": 2}, "a/.zarray": )") +
          kArray2 + R"(, "a/.zattrs": {"units": "K"}}})");
  const Hierarchy hierarchy = open_hierarchy(store);
  EXPECT_EQ(hierarchy.array("a").attributes["units"], "K");
  EXPECT_THAT(groups(hierarchy), ElementsAre(""));
}

TEST(Hierarchy, DeepDirectoriesHaveAnEnd) {
  MemoryStore store;
  std::string path = "d";
  for (int i = 0; i < 200; ++i) path += "/d";
  store.set(path + "/.zarray", kArray2);
  store.set("a/.zarray", kArray2);
  EXPECT_THAT(arrays(open_hierarchy(store)), ElementsAre("a"));
}

}  // namespace hierarchy_test
}  // namespace batchfs
