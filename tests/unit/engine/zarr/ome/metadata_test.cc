#include "engine/zarr/ome/metadata.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace metadata_test {

using testing::HasSubstr;

TEST(OmeMetadata, SaysWhyAGroupIsNoImage) {
  OmeMetadata ome;
  EXPECT_TRUE(ome.empty());
  for (int i = 0; i < 9; ++i) ome.images[std::to_string(i)].name = "image";
  ome.problems.emplace_back("bad", "multiscales: the list is empty");
  EXPECT_EQ(ome.image("3").name, "image");
  const Error none = ome_data::thrown_by([&] { ome.image(""); });
  EXPECT_EQ(none.code(), ErrorCode::not_found);
  EXPECT_EQ(none.why(),
            "the root is not an OME-Zarr image with levels; images are 0, 1, 2, 3, ...");
  EXPECT_THAT(ome_data::thrown_by([&] { ome.image("bad"); }).why(),
              HasSubstr("the group 'bad' cannot be used: multiscales: the list is empty"));
}

}  // namespace metadata_test
}  // namespace batchfs
