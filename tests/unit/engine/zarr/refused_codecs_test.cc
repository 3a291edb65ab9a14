#include "engine/zarr/refused_codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace refused_codecs_test {

TEST(RefusedCodecs, SayWhyAndWhatToDo) {
  EXPECT_THAT(refused_codec_advice("pcodec"), testing::StartsWith(": its only decoder is"));
  EXPECT_THAT(refused_codec_advice("imagecodecs_jpegxl"),
              testing::HasSubstr("write the array again"));
  EXPECT_THAT(refused_codec_advice("n5_wrapper"), testing::HasSubstr("as Zarr"));
  EXPECT_EQ(refused_codec_advice("something"), "");
  EXPECT_EQ(refused_codec_advice(""), "");
}

}  // namespace refused_codecs_test
}  // namespace batchfs
