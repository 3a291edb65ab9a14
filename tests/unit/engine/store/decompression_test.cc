#include "engine/store/decompression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zlib.h>
#include <zstd.h>

#include "engine/base/error.h"

namespace batchfs {
namespace decompression_test {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string zstd(const std::string& text, bool with_size = true) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string plain(const std::string& stored, std::uint64_t largest = 1 << 20) {
  const Buffer out = decompress_file(bytes_of(stored), largest);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

std::string refusal(const std::string& stored, std::uint64_t largest = 1 << 20) {
  try {
    plain(stored, largest);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Decompression, IsKnownByTheFirstBytes) {
  EXPECT_EQ(compression_of(bytes_of(gzip("a"))), FileCompression::gzip);
  EXPECT_EQ(compression_of(bytes_of(zstd("a"))), FileCompression::zstd);
  for (const char* text : {"", "{", "\x1f", "\x28\xb5\x2f", "GRIB"})
    EXPECT_EQ(compression_of(bytes_of(text)), FileCompression::none);
}

TEST(Decompression, OfAllFramesAndMembers) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  for (const std::string& all : {std::string(), std::string("a"), text}) {
    EXPECT_EQ(plain(zstd(all)), all);
    EXPECT_EQ(plain(zstd(all, false)), all);
    EXPECT_EQ(plain(gzip(all)), all);
    EXPECT_EQ(plain(zstd(all) + zstd("and more")), all + "and more");
    EXPECT_EQ(plain(gzip(all) + gzip("and more")), all + "and more");
  }
}

TEST(Decompression, IsBoundedByTheMemory) {
  const std::string zeros(64 << 20, '\0');
  for (const std::string& stored : {zstd(zeros), zstd(zeros, false), gzip(zeros)})
    EXPECT_THAT(refusal(stored), HasSubstr("give more with --memory"));
  const std::string exact(100'000, 'x');
  EXPECT_EQ(plain(zstd(exact), exact.size()), exact);
  EXPECT_THAT(refusal(zstd(exact), exact.size() - 1), HasSubstr("--memory"));
  EXPECT_THAT(refusal(gzip(exact), exact.size() - 1), HasSubstr("--memory"));
}

TEST(Decompression, DamageIsNoticed) {
  const std::string text = "a text that is long enough to be compressed, long enough";
  for (const std::string& stored : {zstd(text), gzip(text)}) {
    for (std::size_t size = 4; size < stored.size(); ++size)
      EXPECT_THAT(refusal(stored.substr(0, size)), HasSubstr("the file is cut short")) << size;
    EXPECT_NE(refusal(stored + "junk that is not a frame"), "nothing was thrown");
  }
  std::string damaged = gzip(text);
  damaged[damaged.size() - 8] ^= 1;  // of the checksum
  EXPECT_THAT(refusal(damaged), HasSubstr("damaged"));
  EXPECT_THROW(decompress_zstd_frame(bytes_of(zstd(text) + zstd(text)), 1 << 20), Error);
}

}  // namespace decompression_test
}  // namespace batchfs
