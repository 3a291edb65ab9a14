#include "gpu/program/gpu_codec_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs::gpu {
namespace gpu_codec_support_test {

GpuCodecSupport coding(const Json& changes) {
  Json zarray = {{"zarr_format", 2},   {"shape", {8, 6, 10}},   {"chunks", {4, 3, 5}},
                 {"dtype", "<f4"},     {"compressor", nullptr}, {"order", "C"},
                 {"filters", nullptr}, {"fill_value", nullptr}};
  zarray.update(changes);
  const auto metadata =
      std::make_shared<const ArrayMetadata>(parse_array_v2("v", zarray, Json::object(), "v"));
  return gpu_codec_support(Array(std::make_shared<MemoryObjects>(), metadata));
}

TEST(GpuCodecSupport, SaysWhatTheGpuUndoes) {
  EXPECT_EQ(coding(Json::object()).kind, GpuCodecSupport::Kind::raw);
  EXPECT_EQ(
      coding({{"compressor", {{"id", "blosc"}, {"cname", "lz4"}, {"clevel", 5}, {"shuffle", 1}}}})
          .kind,
      GpuCodecSupport::Kind::blosc);
  EXPECT_EQ(coding({{"compressor", {{"id", "zstd"}, {"level", 3}}}}).kind,
            GpuCodecSupport::Kind::zstd);
  EXPECT_EQ(coding({{"compressor", {{"id", "lz4"}}}}).kind, GpuCodecSupport::Kind::lz4);
  const GpuCodecSupport shuffled = coding({{"filters", {{{"id", "shuffle"}, {"elementsize", 4}}}}});
  EXPECT_EQ(shuffled.kind, GpuCodecSupport::Kind::shuffle);
  EXPECT_EQ(shuffled.item, 4u);
}

TEST(GpuCodecSupport, LeavesTheRestToTheCpuAndSaysWhy) {
  const GpuCodecSupport zlib = coding({{"compressor", {{"id", "zlib"}, {"level", 1}}}});
  EXPECT_EQ(zlib.kind, GpuCodecSupport::Kind::cpu);
  EXPECT_THAT(zlib.why_cpu, testing::HasSubstr("zlib"));
  const GpuCodecSupport both = coding({{"dtype", ">f4"},
                                       {"filters", {{{"id", "shuffle"}, {"elementsize", 4}}}},
                                       {"compressor", {{"id", "zstd"}, {"level", 3}}}});
  EXPECT_EQ(both.kind, GpuCodecSupport::Kind::cpu);
  EXPECT_EQ(both.form.swap, 1);  // as the CPU decodes it
}

TEST(GpuCodecSupport, ByteOrderAndOrderOfDimensionsAreTheForm) {
  const GpuCodecSupport big = coding({{"dtype", ">f4"}});
  EXPECT_EQ(big.form.swap, 4);
  EXPECT_EQ(big.form.strides, (Dims{60, 20, 4}));
  EXPECT_EQ(coding({{"dtype", ">c8"}, {"fill_value", nullptr}}).form.swap, 4);
  EXPECT_EQ(coding({{"order", "F"}}).form.strides, (Dims{4, 16, 48}));
  EXPECT_EQ(coding({{"dtype", "|u1"}}).form.swap, 1);
}

}  // namespace gpu_codec_support_test
}  // namespace batchfs::gpu
