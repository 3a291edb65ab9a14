#include "engine/zarr/rerooted.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace rerooted_test {

using testing::ElementsAre;
using testing::Key;
using testing::Pair;

Hierarchy tree() {
  Hierarchy hierarchy;
  hierarchy.consolidated = true;
  hierarchy.snapshot_id = "s";
  hierarchy.memory = 7;
  for (const char* group : {"", "model", "model/hist", "modelling"})
    hierarchy.groups[group] = Group{group, {{"own", group}}};
  for (const char* array : {"x", "model/hist/tas", "model/mask", "modelling/a"}) {
    ArrayMetadata& metadata = hierarchy.arrays[array];
    metadata.path = array;
    metadata.zarr_format = 3;
    metadata.source = "zarr.json";
  }
  hierarchy.problems = {{"model/hist/bad/zarr.json", "why"}, {"other/zarr.json", "why"}};
  return hierarchy;
}

TEST(Rerooted, HasWhatIsBelowByItsPathFromThere) {
  const Hierarchy model = rerooted(tree(), "model");
  EXPECT_THAT(model.groups, ElementsAre(Key(""), Key("hist")));
  EXPECT_EQ(model.groups.at("hist").path, "hist");
  EXPECT_EQ(model.groups.at("").attributes, (Json{{"own", "model"}}));
  EXPECT_THAT(model.arrays, ElementsAre(Key("hist/tas"), Key("mask")));
  EXPECT_EQ(model.arrays.at("hist/tas").path, "hist/tas");
  EXPECT_EQ(model.arrays.at("hist/tas").source, "hist/tas/zarr.json") << "an object of this store";
  EXPECT_THAT(model.problems, ElementsAre(Pair("hist/bad/zarr.json", "why")));
  EXPECT_TRUE(model.consolidated);
  EXPECT_EQ(model.snapshot_id, "s");
  EXPECT_EQ(model.memory, 7u);
}

TEST(Rerooted, IsEmptyWhereThereIsNoSuchGroup) {
  for (const char* path : {"mode", "model/hist/tas", "none"}) {
    const Hierarchy none = rerooted(tree(), path);
    EXPECT_TRUE(none.groups.empty() && none.arrays.empty()) << path;
  }
  EXPECT_EQ(rerooted(tree(), "").arrays.size(), 4u);
}

}  // namespace rerooted_test
}  // namespace batchfs
