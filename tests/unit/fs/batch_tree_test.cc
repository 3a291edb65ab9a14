#include "fs/batch_tree.h"

#include <gmock/gmock.h>

#include "fs/formats/formats.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace batch_tree_test {

using testing::ElementsAre;
using testing::HasSubstr;
using Content = BatchSlot::Content;

std::shared_ptr<const View> view_of(const std::string& members) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "x"}, {4, 2}, {1, 2}).index<double>("x", "<f8", {1, 2});
  return parse_view(data.dataset(), R"({"window": {"t": 1}, )" + members + "}");
}

std::vector<std::string> names(const BatchTree& tree, const std::vector<std::uint32_t>& slots) {
  std::vector<std::string> result;
  for (std::uint32_t slot : slots) result.push_back(tree.slots()[slot].name);
  return result;
}

TEST(BatchTree, OneTensorIsAFile) {
  const BatchTree tree(view_of(R"("formats": ["npy"])"));
  EXPECT_THAT(names(tree, tree.top()), ElementsAre(".npy", ".json"));
  EXPECT_EQ(tree.slots()[tree.top()[0]].content, Content::tensor_file);
  EXPECT_EQ(tree.slots()[tree.top()[0]].format, &npy_format());
  EXPECT_EQ(tree.slots()[tree.top()[1]].content, Content::provenance);
}

TEST(BatchTree, SeveralTensorsAreADirectory) {
  const BatchTree tree(view_of(
      R"("tensors": {"x": {"variables": ["a"]}, "y": {"variables": ["a"]}}, "formats": ["npy", "npz"])"));
  EXPECT_THAT(names(tree, tree.top()), ElementsAre("", ".npz", ".json"));
  const auto files = tree.children(tree.top()[0]);
  EXPECT_THAT(names(tree, files), ElementsAre("x.npy", "y.npy"));
  EXPECT_EQ(tree.slots()[files[1]].file, 1u);
}

TEST(BatchTree, FormatsAreInTheOrderOfTheView) {
  const BatchTree tree(view_of(R"("formats": ["zarr", "safetensors", "npy"])"));
  EXPECT_THAT(names(tree, tree.top()), ElementsAre(".zarr", ".safetensors", ".npy", ".json"));
}

TEST(BatchTree, APictureIsOneFileWhateverTheTensors) {
  const BatchTree tree(view_of(
      R"("tensors": {"x": {"variables": ["a"]}, "y": {"variables": ["a"]}}, "formats": ["png"])"));
  EXPECT_THAT(names(tree, tree.top()), ElementsAre(".png", ".json"));
  EXPECT_EQ(tree.slots()[tree.top()[0]].format, &png_format());
  EXPECT_EQ(tree.slots()[tree.top()[0]].file, 0u);
}

TEST(BatchTree, ZarrIsADirectoryOfDirectories) {
  const BatchTree tree(view_of(R"("formats": ["zarr"])"));
  const auto children = tree.children(tree.top()[0]);
  EXPECT_THAT(names(tree, children), testing::UnorderedElementsAre("x", "t_start", "a", ".zgroup",
                                                                   ".zattrs", ".zmetadata"));
  for (std::uint32_t slot : children) {
    if (tree.slots()[slot].name != "a") continue;
    EXPECT_THAT(names(tree, tree.children(slot)), ElementsAre(".zarray", ".zattrs", "0.0.0"));
  }
}

std::string provenance(const BatchTree& tree, std::int64_t epoch, std::int64_t batch) {
  Budget budget(1 << 20);
  const auto source = tree.provenance(epoch, batch, reserve_from(budget));
  std::string text;
  for (std::string piece = source->next(); !piece.empty(); piece = source->next()) text += piece;
  return text;
}

TEST(BatchTree, ProvenanceSaysWhichSnapshotItIsOf) {
  const auto view = view_of("\"batch\": 3");
  const BatchTree tree(view, {{"id", "abc"}});
  Json expected = provenance_of(view, 0, 0);
  expected["snapshot"] = {{"id", "abc"}};
  EXPECT_EQ(Json::parse(provenance(tree, 0, 0)), expected);
}

TEST(BatchTree, TextsAreFoundByTheirSlot) {
  const auto view = view_of(R"("formats": ["zarr"], "batch": 3)");
  const BatchTree tree(view);
  for (std::uint32_t slot = 0; slot < tree.slots().size(); ++slot) {
    const BatchSlot& s = tree.slots()[slot];
    if (s.content == Content::zarr_file) {
      EXPECT_GT(tree.zarr_file(slot, 0, 0).size(), 0u) << s.name;
    }
    if (s.content == Content::provenance) {
      EXPECT_EQ(Json::parse(provenance(tree, 2, 1)), provenance_of(view, 2, 1));
    }
    if (s.name == ".zarray") {
      // The group's own files are not taken for those of an array.
      EXPECT_THAT(tree.zarr_file(slot, 0, 0).text, HasSubstr("\"shape\""));
    }
  }
}

}  // namespace batch_tree_test
}  // namespace batchfs
