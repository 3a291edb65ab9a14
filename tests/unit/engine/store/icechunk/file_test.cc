#include "engine/store/icechunk/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"

namespace batchfs {
namespace file_test {

using icechunk::FileType;
using icechunk::open_file;
using testing::HasSubstr;

std::string refusal(const std::string& file, std::uint64_t largest = 1 << 20) {
  try {
    open_file(bytes_of(file), FileType::manifest, largest);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string compressed(const std::string& text, bool with_size) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size ? 1 : 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

TEST(IcechunkFile, OpensPlainAndCompressedPayloads) {
  const std::string payload = FlatBuilder::file({{0, flat_text(std::string(300'000, 'x'))}});
  for (const auto& file : {ice_file(2, payload), ice_file(2, compressed(payload, true), 2, 1),
                           ice_file(2, compressed(payload, false), 1, 1)}) {
    const icechunk::File opened = open_file(bytes_of(file), FileType::manifest, 1 << 20);
    EXPECT_EQ(opened.payload.size(), payload.size());
    EXPECT_EQ(opened.root().text(0).size(), 300'000u);
  }
}

TEST(IcechunkFile, SaysWhatIsWrong) {
  const std::string payload = FlatBuilder::file({});
  EXPECT_THAT(refusal("PK\x03\x04"), HasSubstr("not a file of Icechunk's"));
  EXPECT_THAT(refusal(ice_file(2, payload).substr(0, 30)), HasSubstr("cut short"));
  EXPECT_THAT(refusal(ice_file(2, payload, 3)), HasSubstr("version 3"));
  EXPECT_THAT(refusal(ice_file(2, payload, 0)), HasSubstr("version 0"));
  EXPECT_THAT(refusal(ice_file(1, payload)), HasSubstr("a snapshot, a manifest was expected"));
  EXPECT_THAT(refusal(ice_file(2, payload, 2, 2)), HasSubstr("method 2"));
  EXPECT_THAT(refusal(ice_file(2, "\x84\xa2id\xdc and more msgpack", 1)), HasSubstr("0.1.2"));
  const std::string frame = compressed(payload + std::string(1000, 'y'), true);
  EXPECT_THAT(refusal(ice_file(2, frame.substr(0, frame.size() - 3), 2, 1)),
              HasSubstr("cut short"));
  EXPECT_THAT(refusal(ice_file(2, frame + "x", 2, 1)), HasSubstr("after the compressed data"));
}

TEST(IcechunkFile, ABombIsRefusedWithinItsMemory) {
  const std::string zeros(64 << 20, '\0');
  for (const bool with_size : {true, false})
    EXPECT_THAT(refusal(ice_file(2, compressed(zeros, with_size), 2, 1)),
                HasSubstr("give more with --memory"));
  EXPECT_THAT(refusal(ice_file(2, std::string(2 << 20, '\0'))),
              HasSubstr("give more with --memory"));
}

}  // namespace file_test
}  // namespace batchfs
