#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors are of imagecodecs.lzw_encode(); longer data are in
// tests/conformance/codecs_of_2026_test.py.

namespace batchfs {
namespace lzw_test {

Bytes text(std::string_view characters) {
  const auto bytes = std::as_bytes(std::span(characters));
  return {bytes.begin(), bytes.end()};
}

/// Codes of nine bits.
Bytes codes(std::initializer_list<unsigned> list) {
  Bytes bytes;
  unsigned bits = 0, count = 0;
  for (const unsigned code : list) {
    bits = bits << 9 | code;
    for (count += 9; count >= 8; count -= 8)
      bytes.push_back(static_cast<std::byte>(bits >> (count - 8)));
  }
  if (count > 0) bytes.push_back(static_cast<std::byte>(bits << (8 - count)));
  return bytes;
}

TEST(Lzw, DecodesStringsOfTheTable) {
  const auto codec = make_codec("imagecodecs_lzw");
  // b"a" * 20
  expect_decodes(*codec, hex("801860503824160b0100"), text("aaaaaaaaaaaaaaaaaaaa"));
  EXPECT_EQ(decode(*codec, hex("804040"), 4).size(), 0u);  // b""
}

TEST(Lzw, TheEndMayBeMissingAndClearingsMayBeRepeated) {
  const auto codec = make_codec("imagecodecs_lzw");
  EXPECT_EQ(decode(*codec, codes({256, 'a', 'b', 258}), 4), text("abab"));
  EXPECT_EQ(decode(*codec, codes({256, 256, 'a', 256, 'b', 257, 'c'}), 4), text("ab"));
  EXPECT_EQ(decode(*codec, {}, 4).size(), 0u);
}

TEST(Lzw, DamageEndsInAnError) {
  const auto codec = make_codec("imagecodecs_lzw");
  EXPECT_EQ(failure([&] {
              decode(*codec, codes({256, 258}), 4);
            }),
            "the LZW data have a code that was not defined");
  EXPECT_TRUE(fails(*codec, codes({256, 'a', 259}), 4));
  EXPECT_TRUE(fails(*codec, codes({256, 'a', 'b', 256, 258}), 8));
  EXPECT_EQ(failure([&] {
              decode(*codec, codes({256, 'a', 'b', 258}), 3);
            }),
            "the LZW data decode to more than was expected");
  EXPECT_EQ(failure([&] { decode(*codec, hex("0001"), 3); }),
            "LZW data older than TIFF 6.0 are not supported");
}

TEST(Lzw, AFullTableStaysFull) {
  // Literals only, with the widths of a table that grows to its end.
  Bytes bytes;
  std::uint64_t bits = 256;
  unsigned count = 9, width = 9, entries = 258;
  auto put = [&](unsigned code) {
    bits = bits << width | code;
    for (count += width; count >= 8; count -= 8)
      bytes.push_back(static_cast<std::byte>(bits >> (count - 8)));
  };
  Bytes expected;
  for (unsigned i = 0; i < 6000; ++i) {
    put(i % 251);
    expected.push_back(static_cast<std::byte>(i % 251));
    if (i > 0 && entries < 4096) ++entries;
    if (entries + 1 == 1U << width && width < 12) ++width;
  }
  bytes.push_back(static_cast<std::byte>(bits << (8 - count)));
  const auto codec = make_codec("imagecodecs_lzw");
  EXPECT_EQ(decode(*codec, bytes, 6000), expected);
  EXPECT_GE(codec->encoded_bound(6000), bytes.size());
}

}  // namespace lzw_test
}  // namespace batchfs
