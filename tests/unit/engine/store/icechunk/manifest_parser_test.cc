#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zdict.h>
#include <zstd.h>

#include "engine/store/icechunk/manifest.h"
#include "tests/unit/engine/store/icechunk/icechunk_files.h"

namespace batchfs {
namespace manifest_parser_test {

using icechunk::Manifest;
using testing::HasSubstr;

std::string refusal(const std::string& file, std::uint64_t memory = 1 << 20) {
  try {
    Manifest::parse(bytes_of(file), object_id('m'), 64 << 20, memory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
std::string with(const std::vector<Fields>& refs) {
  return manifest_file('m', {array_refs('a', refs)});
}

TEST(ManifestParser, RefusesWhatContradictsItself) {
  EXPECT_THAT(refusal(manifest_file('n', {})), HasSubstr("another manifest"));
  EXPECT_THAT(refusal(with({inline_ref({1}, "x"), inline_ref({0}, "y")})), HasSubstr("not sorted"));
  EXPECT_THAT(refusal(with({inline_ref({1}, "x"), inline_ref({1}, "y")})),
              HasSubstr("two references for one chunk"));
  EXPECT_THAT(refusal(with({inline_ref({1}, "x"), inline_ref({1, 2}, "y")})),
              HasSubstr("different numbers of dimensions"));
  EXPECT_THAT(refusal(with({{{0, flat_vector(u32s({0}), 4)}}})), HasSubstr("names no place"));
  Fields both = inline_ref({0}, "x");
  both[4] = flat_struct(raw_id('c'));
  EXPECT_THAT(refusal(with({both})), HasSubstr("or several"));
  EXPECT_THAT(refusal(with({native_ref({0}, 'c', 0, UINT64_MAX)})), HasSubstr("a reference to"));
  EXPECT_THAT(refusal(with({native_ref({0}, 'c', UINT64_MAX - 3, 10)})),
              HasSubstr("a reference to"));
  EXPECT_THAT(refusal(manifest_file('m', {array_refs('a', {}), array_refs('a', {})})),
              HasSubstr("one array twice"));
  EXPECT_THAT(refusal(with({file_ref({0}, std::string(5000, 'x'), 0, 1)})), HasSubstr("too long"));
  EXPECT_THAT(refusal(with({inline_ref({0, 0, 0}, "x"),
                            inline_ref({UINT32_MAX - 1, UINT32_MAX - 1, UINT32_MAX - 1}, "y")})),
              HasSubstr("2^64"));
}

TEST(ManifestParser, TakesNoMoreMemoryThanItMay) {
  std::vector<Fields> refs;
  for (std::uint32_t i = 0; i < 1000; ++i)
    refs.push_back(file_ref({i}, "s3://bucket/" + std::to_string(i), 0, 1));
  EXPECT_EQ(refusal(with(refs)), "");
  EXPECT_THAT(refusal(with(refs), 24'000), HasSubstr("--memory"));
  EXPECT_THAT(refusal(with({inline_ref({0}, std::string(100'000, 'x'))}), 50'000),
              HasSubstr("--memory"));
}

TEST(ManifestParser, DecompressesLocationsWithTheDictionary) {
  std::string samples;
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 2000; ++i) {
    const std::string one = "s3://a-bucket/a/long/path/to/files/number-" + std::to_string(i);
    samples += one;
    sizes.push_back(one.size());
  }
  std::string dictionary(2048, '\0');
  dictionary.resize(ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data(),
                                          sizes.data(), static_cast<unsigned>(sizes.size())));
  const std::string location = "s3://a-bucket/a/long/path/to/files/number-77";
  std::string compressed(256, '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  compressed.resize(ZSTD_compress_usingDict(context, compressed.data(), compressed.size(),
                                            location.data(), location.size(), dictionary.data(),
                                            dictionary.size(), 3));
  const std::string bomb_text(5000, 'x');
  std::string bomb(256, '\0');
  bomb.resize(ZSTD_compress_usingDict(context, bomb.data(), bomb.size(), bomb_text.data(),
                                      bomb_text.size(), dictionary.data(), dictionary.size(), 3));
  ZSTD_freeCCtx(context);
  const auto ref = [](const std::string& bytes) {
    return Fields{
        {0, flat_vector(u32s({0}), 4)}, {3, flat_number<std::uint64_t>(5)}, {8, flat_text(bytes)}};
  };
  const std::string good =
      manifest_file('m', {array_refs('a', {ref(compressed)})}, {{2, flat_text(dictionary)}});
  const auto manifest = Manifest::parse(bytes_of(good), object_id('m'), 1 << 20, 1 << 20);
  EXPECT_EQ(manifest->find(node_id('a'), std::vector<std::uint32_t>{0})->file.location, location);
  EXPECT_THAT(refusal(with({ref(compressed)})), HasSubstr("no dictionary"));
  EXPECT_THAT(
      refusal(manifest_file('m', {array_refs('a', {ref(bomb)})}, {{2, flat_text(dictionary)}})),
      HasSubstr("cannot be decompressed"));
}

TEST(ManifestParser, EndsWellWhereverAManifestIsCutOrFlipped) {
  const std::string whole =
      with({native_ref({0}, 'c', 1, 2), inline_ref({1}, "here"), file_ref({5}, "s3://b/x", 3, 4)});
  for (std::size_t i = 39; i < whole.size(); ++i) {
    refusal(whole.substr(0, i));
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(value);
      refusal(changed);
    }
  }
}

}  // namespace manifest_parser_test
}  // namespace batchfs
