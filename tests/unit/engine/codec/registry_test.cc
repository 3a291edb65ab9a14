#include "engine/codec/codecs.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace registry_test {

TEST(Registry, KnowsEveryCodecByItsName) {
  const std::vector<std::string> names = codec_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const std::string& name : names) EXPECT_NE(find_codec(name), nullptr) << name;
}

TEST(Registry, HasNothingForOtherNames) {
  for (const char* name :
       {"", "Blosc", "pcodec", "pickle", "numcodecs.zlib", "bytes ", "vlen-array"})
    EXPECT_EQ(find_codec(name), nullptr) << name;
}

TEST(Registry, SaysWhyACodecIsRefused) {
  EXPECT_THAT(
      unknown_codec("pcodec").what(),
      testing::StartsWith("the codec 'pcodec' is not supported: its only decoder is a Rust"));
  EXPECT_STREQ(unknown_codec("something").what(), "the codec 'something' is not supported");
}

TEST(Registry, KnowsWhatCodecsTakeAndGive) {
  EXPECT_EQ(codec_stage("transpose"), CodecStage::array);
  EXPECT_EQ(codec_stage("delta"), CodecStage::filter);
  EXPECT_EQ(codec_stage("sharding_indexed"), CodecStage::serializer);
  EXPECT_EQ(codec_stage("shuffle"), CodecStage::bytes);
  EXPECT_EQ(codec_stage("zfpy"), CodecStage::values);
}

}  // namespace registry_test
}  // namespace batchfs
