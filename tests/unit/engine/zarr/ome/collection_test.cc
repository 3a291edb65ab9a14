#include "engine/zarr/ome/collection.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace collection_test {

using testing::ElementsAre;
using Type = OmeCollection::Type;

OmeCollection collection_of(const std::string& text, const std::string& group) {
  const Json attributes = parse_json(text, "test");
  return parse_collection(*find_ome(attributes, group), group).value();
}

TEST(OmeCollection, NamesItsMembers) {
  const auto plate = collection_of(
      R"({"plate": {"name": "p", "wells": [{"path": "A/1"}, {"path": "B/2"}]}})", "g");
  EXPECT_EQ(plate.type, Type::plate);
  EXPECT_EQ(plate.name, "p");
  EXPECT_THAT(plate.paths, ElementsAre("g/A/1", "g/B/2"));
  const auto well =
      collection_of(R"({"ome": {"version": "0.5", "well": {"images": [{"path": "0"}]}}})", "A/1");
  EXPECT_EQ(well.type, Type::well);
  EXPECT_THAT(well.paths, ElementsAre("A/1/0"));
  const auto labels = collection_of(R"({"labels": ["cells"]})", "labels");
  EXPECT_THAT(labels.paths, ElementsAre("labels/cells"));
  const auto series = collection_of(R"({"series": ["1", "0"]})", "s/OME");
  EXPECT_THAT(series.paths, ElementsAre("s/1", "s/0"));
  EXPECT_TRUE(collection_of(R"({"bioformats2raw.layout": 3})", "").paths.empty());
  EXPECT_GT(memory_of(plate), sizeof plate);
}

}  // namespace collection_test
}  // namespace batchfs
