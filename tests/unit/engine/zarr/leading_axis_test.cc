#include "engine/zarr/leading_axis.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace leading_axis_test {

ArrayMetadata array_of(const Dims& shape, const Dims& chunks) {
  ArrayMetadata array;
  array.shape = shape;
  array.chunk_shape = chunks;
  array.key_encoding = {ChunkKeyEncoding::Style::v3_default, '/'};
  return array;
}

TEST(LeadingAxis, KeysAreThoseOfTheStoredArray) {
  const ArrayMetadata wide = add_leading_axis(array_of({10, 6}, {4, 3}));
  EXPECT_EQ(wide.shape, (Dims{1, 10, 6}));
  EXPECT_EQ(wide.chunk_shape, (Dims{1, 4, 3}));
  EXPECT_EQ(wide.key_encoding.key({0, 2, 1}), "c/2/1");
  const ArrayMetadata scalar = add_leading_axis(array_of({}, {}));
  EXPECT_EQ(scalar.shape, Dims{1});
  EXPECT_EQ(scalar.key_encoding.key({0}), "c");
  ArrayMetadata old = array_of({}, {});
  old.key_encoding = {};
  EXPECT_EQ(add_leading_axis(old).key_encoding.key({0}), "0");
}

TEST(LeadingAxis, CodecsThatSpeakOfDimensionsHaveOneMore) {
  ArrayMetadata array = array_of({10, 6}, {4, 3});
  array.codecs = {
      {"transpose", {{"order", {1, 0}}}},
      {"sharding_indexed",
       {{"chunk_shape", {2, 3}},
        {"codecs", Json::array({{{"name", "transpose"}, {"configuration", {{"order", {1, 0}}}}},
                                {{"name", "bytes"}}})}}},
      {"transpose", {{"order", "F"}}}};
  const ArrayMetadata wide = add_leading_axis(array);
  EXPECT_EQ(wide.codecs[0].configuration["order"], Json({0, 2, 1}));
  EXPECT_EQ(wide.codecs[1].configuration["chunk_shape"], Json({1, 2, 3}));
  EXPECT_EQ(wide.codecs[1].configuration["codecs"][0]["configuration"]["order"], Json({0, 2, 1}));
  EXPECT_EQ(wide.codecs[2].configuration["order"], "F");
}

TEST(LeadingAxis, RefusesMoreDimensionsThanAnArrayHas) {
  const Dims most(static_cast<std::size_t>(kMaxArrayDims), 1);
  EXPECT_THROW(add_leading_axis(array_of(most, most)), Error);
}

TEST(LeadingAxis, AnAxisOfTheChunkIsOneFurther) {
  ArrayMetadata array = array_of({10, 6}, {4, 3});
  array.codecs = {{"imagecodecs_delta", {{"axis", 0}}},
                  {"imagecodecs_delta", {{"axis", 0}, {"shape", nullptr}}},
                  {"imagecodecs_delta", {{"axis", -1}}},
                  {"imagecodecs_delta", {{"axis", 0}, {"shape", {4, 3}}}}};
  array.zarr_format = 3;
  const ArrayMetadata wide = add_leading_axis(array);
  std::vector<int> axes;
  for (const CodecSpec& codec : wide.codecs) axes.push_back(codec.configuration["axis"].get<int>());
  EXPECT_EQ(axes, (std::vector<int>{1, 1, -1, 0}));
  array.zarr_format = 2;
  EXPECT_EQ(add_leading_axis(array).codecs[0].configuration["axis"], 0);
}

TEST(LeadingAxis, AReshapedChunkHasOneMoreOnBothSides) {
  ArrayMetadata array = array_of({10, 6}, {4, 3});
  array.codecs = {{"reshape", {{"shape", Json::array({Json::array({0}), -1, Json::array({1})})}}}};
  EXPECT_EQ(add_leading_axis(array).codecs[0].configuration["shape"].dump(), "[1,[1],-1,[2]]");
}

}  // namespace leading_axis_test
}  // namespace batchfs
