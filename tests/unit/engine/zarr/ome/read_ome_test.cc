#include "engine/zarr/ome/read_ome.h"

#include <gmock/gmock.h>

#include "engine/zarr/rerooted.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace read_ome_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGroup = R"({"zarr_format": 2})";

std::string array_of(const std::string& shape) {
  return R"({"zarr_format": 2, "shape": )" + shape + R"(, "chunks": )" + shape +
         R"(, "dtype": "|u1", "order": "C", "compressor": null, "fill_value": 0, "filters": null})";
}

std::string image_of(const std::string& axes, const std::string& scale) {
  return R"({"multiscales": [{"version": "0.4", "axes": [)" + axes +
         R"(], "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": )" +
         scale + R"(}]}]}], "omero": {"channels": [{"label": "a"}]}})";
}

constexpr const char* kAxes = R"({"name": "c", "type": "channel"}, {"name": "x", "type": "space"})";

void add_image(MemoryStore& store, const std::string& group, const std::string& attributes) {
  store.set(group + ".zgroup", kGroup);
  store.set(group + ".zattrs", attributes);
  store.set(group + "0/.zarray", array_of("[2, 4]"));
}

TEST(ReadOme, GivesAxesToTheArraysOfImages) {
  MemoryStore store;
  store.set(".zgroup", kGroup);
  add_image(store, "good/", image_of(kAxes, "[1, 0.5]"));
  add_image(store, "bad/", image_of(kAxes, "[1, 0]"));
  add_image(store, "flat/", image_of(R"({"name": "x"})", "[1]"));
  store.set("good/labels/.zgroup", kGroup);
  store.set("good/labels/.zattrs", R"({"labels": ["cells"]})");
  const Hierarchy hierarchy = open_hierarchy(store);
  const ArrayMetadata& array = hierarchy.array("good/0");
  ASSERT_EQ(array.axes.size(), 2u);
  EXPECT_EQ(array.axes[1].scale, 0.5);
  EXPECT_EQ(array.axes[0].labels, nullptr) << "there are two channels and one label";
  EXPECT_THAT(hierarchy.ome.image("good").labels, ElementsAre("good/labels/cells"));
  EXPECT_THAT(hierarchy.ome.image("good").notes, ElementsAre(HasSubstr("1 label for 2 channels")));
  EXPECT_TRUE(hierarchy.array("bad/0").axes.empty());
  EXPECT_TRUE(hierarchy.array("flat/0").axes.empty());
  ASSERT_EQ(hierarchy.ome.problems.size(), 2u);
  EXPECT_EQ(hierarchy.ome.problems[0].first, "bad");
  EXPECT_THAT(hierarchy.ome.problems[1].second,
              HasSubstr("the array 'flat/0' has 2 dimensions, the image 1 axis"));
  EXPECT_TRUE(hierarchy.problems.empty());
  // From a group on, paths are others.
  const Hierarchy below = rerooted(hierarchy, "good");
  EXPECT_EQ(below.ome.image("").levels.front().path, "0");
  EXPECT_EQ(below.ome.images.size(), 1u);
  MetadataMemory little(10);
  Hierarchy again = hierarchy;
  EXPECT_THROW(read_ome(again, little), Error);
}

}  // namespace read_ome_test
}  // namespace batchfs
