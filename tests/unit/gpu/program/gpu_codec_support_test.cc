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
  EXPECT_EQ(coding({{"compressor", {{"id", "zlib"}, {"level", 1}}}}).kind,
            GpuCodecSupport::Kind::zlib);
  EXPECT_EQ(coding({{"compressor", {{"id", "gzip"}, {"level", 1}}}}).kind,
            GpuCodecSupport::Kind::gzip);
}

TEST(GpuCodecSupport, CompressedBytesMayBeShuffled) {
  const Json shuffle = {{"id", "shuffle"}, {"elementsize", 4}};
  const GpuCodecSupport alone = coding({{"filters", {shuffle}}});
  EXPECT_EQ(alone.kind, GpuCodecSupport::Kind::raw);
  EXPECT_EQ(alone.item, 4u);
  const std::pair<const char*, GpuCodecSupport::Kind> compressors[] = {
      {"zlib", GpuCodecSupport::Kind::zlib},
      {"gzip", GpuCodecSupport::Kind::gzip},
      {"zstd", GpuCodecSupport::Kind::zstd},
      {"lz4", GpuCodecSupport::Kind::lz4},
      {"imagecodecs_zlib", GpuCodecSupport::Kind::zlib},
      {"imagecodecs_deflate", GpuCodecSupport::Kind::zlib},
      {"imagecodecs_zstd", GpuCodecSupport::Kind::zstd}};
  for (const auto& [name, kind] : compressors) {
    const GpuCodecSupport before = coding({{"filters", {shuffle}}, {"compressor", {{"id", name}}}});
    EXPECT_EQ(before.kind, kind) << name;
    EXPECT_EQ(before.item, 4u) << name;
    // VirtualiZarr puts all codecs among the filters.
    const GpuCodecSupport among = coding({{"filters", {shuffle, {{"id", name}}}}});
    EXPECT_EQ(among.kind, kind) << name;
    EXPECT_EQ(among.item, 4u) << name;
  }
  EXPECT_EQ(coding({{"filters", {{{"id", "shuffle"}}}}}).item, 4u);  // numcodecs' default
}

TEST(GpuCodecSupport, LeavesTheRestToTheCpuAndSaysWhy) {
  const GpuCodecSupport bz2 = coding({{"compressor", {{"id", "bz2"}, {"level", 1}}}});
  EXPECT_EQ(bz2.kind, GpuCodecSupport::Kind::cpu);
  EXPECT_THAT(bz2.why_cpu, testing::HasSubstr("bz2"));
  const Json shuffle = {{"id", "shuffle"}, {"elementsize", 4}}, zlib = {{"id", "zlib"}};
  for (const Json& filters : {Json{zlib, shuffle}, Json{zlib, zlib}, Json{shuffle, shuffle}})
    EXPECT_EQ(coding({{"filters", filters}}).kind, GpuCodecSupport::Kind::cpu) << filters.dump();
  const GpuCodecSupport blosc =
      coding({{"dtype", ">f4"}, {"filters", {shuffle}}, {"compressor", {{"id", "blosc"}}}});
  EXPECT_EQ(blosc.kind, GpuCodecSupport::Kind::cpu);
  EXPECT_EQ(blosc.form.swap, 1);  // as the CPU decodes it
  const GpuCodecSupport large = coding({{"filters", {{{"id", "shuffle"}, {"elementsize", 256}}}}});
  EXPECT_EQ(large.kind, GpuCodecSupport::Kind::cpu);
  EXPECT_THAT(large.why_cpu, testing::HasSubstr("256"));
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
