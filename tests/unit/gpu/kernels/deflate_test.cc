// Streams of zlib and gzip, by the kernels' code on the host. The oracle is zlib: what it makes in
// every way it knows is decoded, what it refuses is refused, and the reverse.

#include "gpu/kernels/deflate.cuh"

#include <random>

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/unit/gpu/deflated.h"
#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace deflate_test {

using Bytes = std::vector<std::uint8_t>;

struct Outcome {
  bool good = false;
  Bytes data;
};

template <int kThreads = 64, int kTile = 512>
Outcome on_gpu_code(const Bytes& stream, std::size_t size,
                    DeflateFormat format = DeflateFormat::zlib) {
  DecodePlan plan;
  if (plan.add_deflate(as_bytes(stream), format, 0, 0, size) != Verdict::planned) return {};
  Emulated result = emulate<kThreads, kTile>(plan, stream, size);
  return {result.status[0] == kDecoded, std::move(result.target)};
}

/// With the rules of batchfs's own decoder: bytes after zlib's format are ignored, members of gzip
/// follow one another to the end.
Outcome by_zlib(const Bytes& stream, std::size_t size, DeflateFormat format = DeflateFormat::zlib) {
  Outcome outcome;
  outcome.data.resize(size + 1);
  z_stream z = {};
  inflateInit2(&z, format == DeflateFormat::gzip ? 15 + 16 : 15);
  z.next_in = const_cast<Bytef*>(stream.data());
  z.avail_in = static_cast<uInt>(stream.size());
  z.next_out = outcome.data.data();
  z.avail_out = static_cast<uInt>(size + 1);
  for (;;) {
    outcome.good = inflate(&z, Z_FINISH) == Z_STREAM_END;
    if (!outcome.good || format != DeflateFormat::gzip || z.avail_in == 0) break;
    inflateReset(&z);
  }
  outcome.good = outcome.good && z.avail_out == 1;
  inflateEnd(&z);
  outcome.data.resize(size);
  return outcome;
}

void expect_same(const Bytes& stream, std::size_t size, const std::string& what,
                 DeflateFormat format = DeflateFormat::zlib) {
  const Outcome ours = on_gpu_code(stream, size, format), theirs = by_zlib(stream, size, format);
  ASSERT_EQ(ours.good, theirs.good) << what;
  if (ours.good) {
    ASSERT_TRUE(ours.data == theirs.data) << what;
  }
}

TEST(Deflate, DecodesWhatZlibMakesInEveryWay) {
  for (const Data kind : kAllData)
    for (const std::size_t size : {1, 2, 3, 100, 257, 4096, 33'333, 150'000})
      for (int level = 0; level <= 9; ++level)
        for (const int strategy :
             {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
          if (strategy != Z_DEFAULT_STRATEGY && level != 4) continue;
          const Bytes data = make_data(kind, size);
          const Outcome outcome =
              on_gpu_code(deflated(data, {.level = level, .strategy = strategy}), size);
          ASSERT_TRUE(outcome.good)
              << static_cast<int>(kind) << " " << size << " " << level << " " << strategy;
          ASSERT_TRUE(outcome.data == data)
              << static_cast<int>(kind) << " " << size << " " << level << " " << strategy;
        }
}

TEST(Deflate, DecodesLongStreamsWithTheKernelsOwnShape) {
  for (const Data kind : kAllData)
    for (const int memory : {6, 8, 9}) {  // blocks of 4, 16 and 32 thousand symbols
      const Bytes data = make_data(kind, 1'500'001);
      const Outcome outcome =
          on_gpu_code<512, 8192>(deflated(data, {.level = 4, .memory = memory}), data.size());
      ASSERT_TRUE(outcome.good) << static_cast<int>(kind) << " " << memory;
      ASSERT_TRUE(outcome.data == data) << static_cast<int>(kind) << " " << memory;
    }
}

TEST(Deflate, DecodesBlocksThatWereFlushed) {
  for (const int flush : {Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK}) {
    const Bytes data = make_data(Data::packed, 200'000);
    const Bytes stream = deflated(data, {.level = 6, .flush = flush, .flush_each = 7'777});
    const Outcome outcome = on_gpu_code(stream, data.size());
    ASSERT_TRUE(outcome.good) << flush;
    ASSERT_TRUE(outcome.data == data) << flush;
  }
}

TEST(Deflate, DecodesEveryWindow) {
  for (int window = 9; window <= 15; ++window) {
    const Bytes data = make_data(Data::text, 50'000);
    const Outcome outcome = on_gpu_code(deflated(data, {.window = window}), data.size());
    ASSERT_TRUE(outcome.good) << window;
    ASSERT_TRUE(outcome.data == data) << window;
  }
}

TEST(Deflate, IgnoresWhatFollowsAStreamOfZlib) {
  const Bytes data = make_data(Data::text, 5'000);
  Bytes stream = deflated(data);
  stream.insert(stream.end(), {1, 2, 3});
  expect_same(stream, data.size(), "three bytes more");
  EXPECT_TRUE(on_gpu_code(stream, data.size()).good);
}

TEST(Deflate, RefusesAnotherSize) {
  const Bytes stream = deflated(make_data(Data::text, 5'000));
  for (const std::size_t size : {1, 4'999, 5'001, 10'000})
    EXPECT_FALSE(on_gpu_code(stream, size).good) << size;
  DecodePlan plan;
  EXPECT_EQ(plan.add_deflate({}, DeflateFormat::zlib, 0, 0, 100), Verdict::damaged);
  EXPECT_EQ(plan.add_deflate(as_bytes(stream), DeflateFormat::zlib, 0, 0, kMaxStream + 1ull),
            Verdict::unsupported);
  EXPECT_EQ(plan.chunks(), 0u);
  EXPECT_TRUE(plan.deflate_streams.empty());
}

TEST(Deflate, AgreesWithZlibOnEveryTruncation) {
  for (const DeflateFormat format : {DeflateFormat::zlib, DeflateFormat::gzip})
    for (const int level : {0, 1, 9}) {
      const Bytes data = make_data(Data::text, 1'500);
      const Bytes stream = deflated(data, {.level = level, .gzip = format == DeflateFormat::gzip});
      for (std::size_t size = 0; size < stream.size(); ++size) {
        const Bytes cut(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size));
        ASSERT_FALSE(on_gpu_code(cut, data.size(), format).good) << size;
      }
    }
}

TEST(Deflate, AgreesWithZlibOnEveryFlippedBit) {
  for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY}) {
    const Bytes data = make_data(Data::text, 700);
    const Bytes stream = deflated(data, {.level = 6, .strategy = strategy});
    for (std::size_t bit = 0; bit < 8 * stream.size(); ++bit) {
      Bytes flipped = stream;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      expect_same(flipped, data.size(), std::to_string(strategy) + " " + std::to_string(bit));
    }
  }
}

/// The checksum hides most damage: streams whose last bytes are made to fit.
TEST(Deflate, AgreesWithZlibOnFlippedBitsBelowARightChecksum) {
  std::mt19937 random(11);
  int decoded = 0;
  for (const Data kind : kAllData)
    for (const int level : {1, 6}) {
      const Bytes data = make_data(kind, 3'000);
      const Bytes stream = deflated(data, {.level = level, .memory = 1 + level});
      for (int round = 0; round < 150; ++round) {
        Bytes flipped = stream;
        const std::size_t reach = round % 2 == 0 ? stream.size() - 6 : 60;
        flipped[2 + random() % std::min(reach, stream.size() - 6)] ^=
            static_cast<std::uint8_t>(1u << random() % 8);
        Bytes made(100'000);
        const std::size_t size = raw_inflated(flipped, made);
        if (size > 0) put_adler(flipped, made, size);
        expect_same(flipped, size > 0 ? size : data.size(),
                    std::to_string(static_cast<int>(kind)) + " " + std::to_string(round));
        decoded += by_zlib(flipped, size).good;
      }
    }
  EXPECT_GT(decoded, 500);  // of 2100
}

TEST(Deflate, RefusesADamagedChecksum) {
  const Bytes data = make_data(Data::packed, 3'000);
  for (const DeflateFormat format : {DeflateFormat::zlib, DeflateFormat::gzip}) {
    const Bytes stream = deflated(data, {.gzip = format == DeflateFormat::gzip});
    EXPECT_TRUE(on_gpu_code(stream, data.size(), format).good);
    for (std::size_t back = 1; back <= (format == DeflateFormat::gzip ? 8u : 4u); ++back) {
      Bytes damaged = stream;
      damaged[damaged.size() - back] ^= 0x10;
      EXPECT_FALSE(on_gpu_code(damaged, data.size(), format).good) << back;
    }
  }
}

TEST(Deflate, DecodesAllMembersOfGzip) {
  Bytes stream, all;
  for (unsigned i = 0; i < 5; ++i) {
    const Bytes data = make_data(i % 2 == 0 ? Data::text : Data::packed, 3'000 * i, i);
    const Bytes member = deflated(data, {.gzip = true});
    stream.insert(stream.end(), member.begin(), member.end());
    all.insert(all.end(), data.begin(), data.end());
    if (all.empty()) continue;
    const Outcome outcome = on_gpu_code(stream, all.size(), DeflateFormat::gzip);
    ASSERT_TRUE(outcome.good) << i;
    ASSERT_TRUE(outcome.data == all) << i;
  }
  stream.push_back(0);
  EXPECT_FALSE(on_gpu_code(stream, all.size(), DeflateFormat::gzip).good);
}

TEST(Deflate, CopiesDoNotReachIntoTheMemberBefore) {
  const Bytes data = make_data(Data::noise, 2'000);
  Bytes stream = deflated(data, {.gzip = true});
  // A member that begins with a copy of what came before it: deflated with a dictionary.
  const Bytes second = deflated(data, {.gzip = true, .dictionary = data});
  stream.insert(stream.end(), second.begin(), second.end());
  expect_same(stream, 2 * data.size(), "two members", DeflateFormat::gzip);
  EXPECT_FALSE(on_gpu_code(stream, 2 * data.size(), DeflateFormat::gzip).good);
}

TEST(Deflate, ReadsTheHeadersOfGzip) {
  const Bytes data = make_data(Data::text, 900);
  const Bytes plain = deflated(data, {.gzip = true});
  const auto with = [&](std::uint8_t flags, const Bytes& fields) {
    Bytes stream = plain;
    stream[3] = flags;
    stream.insert(stream.begin() + 10, fields.begin(), fields.end());
    return stream;
  };
  const Bytes extra = {3, 0, 'a', 'b', 'c'}, name = {'n', 'a', 'm', 'e', 0};
  Bytes both = extra;
  both.insert(both.end(), name.begin(), name.end());
  for (const Bytes& stream :
       {with(1, {}), with(4, extra), with(8, name), with(16, name), with(12, both)}) {
    expect_same(stream, data.size(), "a header", DeflateFormat::gzip);
    EXPECT_TRUE(on_gpu_code(stream, data.size(), DeflateFormat::gzip).good);
  }
  for (const Bytes& stream :
       {with(0x20, {}), with(0x40, {}), with(0x80, {}), with(4, {0xff, 0xff}), with(2, {0, 0})})
    expect_same(stream, data.size(), "a damaged header", DeflateFormat::gzip);
  // Headers with a checksum, and long names, are the CPU's.
  EXPECT_FALSE(on_gpu_code(with(8, Bytes(1'000, 'x')), data.size(), DeflateFormat::gzip).good);
}

/// Writes bits as deflate has them.
class BitWriter {
 public:
  explicit BitWriter(Bytes begin) : bytes_(std::move(begin)) {}
  BitWriter& bits(std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) {
      if (free_ == 0) {
        bytes_.push_back(0);
        free_ = 8;
      }
      bytes_.back() |= static_cast<std::uint8_t>((value >> i & 1) << (8 - free_));
      --free_;
    }
    return *this;
  }
  /// A code, whose first bit comes first.
  BitWriter& code(std::uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) bits(value >> i & 1, 1);
    return *this;
  }
  Bytes done() {
    Bytes made(100'000);
    if (const std::size_t size = raw_inflated(bytes_, made); size > 0) {
      bytes_.resize(bytes_.size() + 4);
      put_adler(bytes_, made, size);
    } else {
      bytes_.resize(bytes_.size() + 4);
    }
    return bytes_;
  }

 private:
  Bytes bytes_;
  int free_ = 0;
};

/// A dynamic block whose lengths of codes are written each by itself: 4 bits, 0 to 15.
BitWriter block(const Bytes& literals, const Bytes& distances) {
  BitWriter out({0x78, 0x9c});
  out.bits(1, 1).bits(2, 2);
  out.bits(static_cast<std::uint32_t>(literals.size()) - 257, 5);
  out.bits(static_cast<std::uint32_t>(distances.size()) - 1, 5);
  out.bits(15, 4);
  // 16, 17 and 18 have no codes, all others codes of four bits: the symbol itself.
  for (int i = 0; i < 19; ++i) out.bits(i < 3 ? 0 : 4, 3);
  for (const Bytes* lengths : {&literals, &distances})
    for (const std::uint8_t length : *lengths) out.code(length, 4);
  return out;
}

Bytes lengths(std::size_t count,
              std::initializer_list<std::pair<std::size_t, std::uint8_t>> codes) {
  Bytes result(count);
  for (const auto& [symbol, length] : codes) result[symbol] = length;
  return result;
}

TEST(Deflate, TakesAndRefusesCodesAsZlibDoes) {
  struct Case {
    const char* what;
    bool good;
    Bytes stream;
    std::size_t size;
  };
  const auto ab = lengths(257, {{'a', 1}, {'b', 2}, {256, 2}});
  const auto abc = lengths(258, {{'a', 2}, {'b', 2}, {256, 2}, {257, 2}});
  const Case cases[] = {
      {"complete codes, no distances", true,
       block(ab, {0}).code(0, 1).code(2, 2).code(0, 1).code(3, 2).done(), 3},
      {"one distance of one bit", true,
       block(abc, {1}).code(0, 2).code(3, 2).code(0, 1).code(2, 2).done(), 4},
      {"the other code of one bit", false,
       block(abc, {1}).code(0, 2).code(3, 2).code(1, 1).code(2, 2).done(), 4},
      {"a distance where there is none", false,
       block(abc, {0}).code(0, 2).code(3, 2).code(0, 1).code(2, 2).done(), 4},
      {"a distance before the stream", false,
       block(abc, {1, 1}).code(0, 2).code(3, 2).code(1, 1).code(2, 2).done(), 4},
      {"a distance code of two bits alone", false, block(abc, {2}).code(0, 2).code(2, 2).done(), 1},
      {"distance codes that are too many", false,
       block(abc, {1, 1, 1}).code(0, 2).code(2, 2).done(), 1},
      {"literal codes that are incomplete", false,
       block(lengths(257, {{'a', 2}, {256, 2}}), {0}).code(0, 2).code(1, 2).done(), 1},
      {"literal codes that are too many", false,
       block(lengths(257, {{'a', 1}, {'b', 1}, {256, 2}}), {0}).code(0, 1).code(2, 2).done(), 1},
      {"only the end", false, block(lengths(257, {{256, 1}}), {0}).code(0, 1).done(), 1},
      {"no end", false, block(lengths(257, {{'a', 1}, {'b', 1}}), {0}).code(0, 1).done(), 1},
      {"the length symbol 286", false,
       block(lengths(287, {{'a', 1}, {256, 2}, {286, 2}}), {1}).code(0, 1).code(2, 2).done(), 1},
      {"the distance symbol 30", false,
       block(abc, lengths(31, {{0, 1}, {30, 1}})).code(0, 2).code(2, 2).done(), 1},
      {"codes of 15 bits", true,
       block(lengths(257, {{'a', 1},
                           {'b', 2},
                           {'c', 3},
                           {'d', 4},
                           {'e', 5},
                           {'f', 6},
                           {'g', 7},
                           {'h', 8},
                           {'i', 9},
                           {'j', 10},
                           {'k', 11},
                           {'l', 12},
                           {'m', 13},
                           {'n', 14},
                           {'o', 15},
                           {256, 15}}),
             {0})
           .code(0x7ffe, 15)
           .code(0x3ffe, 14)
           .code(0x1ffe, 13)
           .code(0xffe, 12)
           .code(0x7fe, 11)
           .code(0, 1)
           .code(0x7fff, 15)
           .done(),
       6},
      {"a block of the third kind", false, BitWriter({0x78, 0x9c}).bits(7, 3).done(), 1},
      {"a fixed block", true,
       BitWriter({0x78, 0x9c})
           .bits(3, 3)
           .code(0x30 + 'a', 8)
           .code(1, 7)
           .code(0, 5)
           .code(0, 7)
           .done(),
       4},
      {"the fixed symbol 287", false,
       BitWriter({0x78, 0x9c})
           .bits(3, 3)
           .code(0x30 + 'a', 8)
           .code(0xc7, 8)
           .code(0, 5)
           .code(0, 7)
           .done(),
       259},
      {"the fixed distance 31", false,
       BitWriter({0x78, 0x9c})
           .bits(3, 3)
           .code(0x30 + 'a', 8)
           .code(1, 7)
           .code(31, 5)
           .code(0, 7)
           .done(),
       4},
  };
  for (const Case& c : cases) {
    expect_same(c.stream, c.size, c.what);
    EXPECT_EQ(on_gpu_code(c.stream, c.size).good, c.good) << c.what;
  }
}

TEST(Deflate, TakesTheHeadersOfZlibThatZlibTakes) {
  const Bytes stream = deflated(make_data(Data::text, 300));
  for (unsigned method = 0; method < 256; ++method)
    for (const unsigned flags : {0u, 0x20u, 0x40u}) {
      Bytes changed = stream;
      changed[0] = static_cast<std::uint8_t>(method);
      const unsigned check = (method << 8 | flags) % 31;
      changed[1] = static_cast<std::uint8_t>(flags | (check > 0 ? 31 - check : 0));
      expect_same(changed, 300, std::to_string(method) + " " + std::to_string(flags));
      changed[1] ^= 1;
      expect_same(changed, 300, std::to_string(method) + " with a wrong check");
    }
}

TEST(Deflate, LeavesManyTinyBlocksToTheCpu) {
  BitWriter out({0x78, 0x9c});
  for (int i = 0; i < 5'000; ++i) out.bits(0 | 1 << 1, 3).code(0x30 + 'a', 8).code(0, 7);
  const Bytes stream = out.bits(1 | 1 << 1, 3).code(0, 7).done();
  EXPECT_TRUE(by_zlib(stream, 5'000).good);
  EXPECT_FALSE(on_gpu_code(stream, 5'000).good);
}

TEST(Deflate, CodesThatNeverFallIntoStepAreStillRead) {
  // All codes have eight bits: what is followed from a wrong bit stays wrong.
  Bytes data(60'000);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::uint8_t>(i * 7 % 255 + (i / 255 % 3 == 0));
  std::mt19937 random(5);
  std::shuffle(data.begin(), data.end(), random);
  const Bytes stream = deflated(data, {.strategy = Z_HUFFMAN_ONLY});
  const Outcome outcome = on_gpu_code(stream, data.size());
  ASSERT_TRUE(outcome.good);
  EXPECT_TRUE(outcome.data == data);
}

TEST(Deflate, MoreRunsThanAStepHoldsTakeSeveral) {
  // Literals and copies take turns: a run for every two bytes or so.
  Bytes data;
  std::mt19937 random(9);
  while (data.size() < 40'000) {
    data.push_back(static_cast<std::uint8_t>(random()));
    for (int i = 0; i < 3; ++i)
      data.push_back(data.size() > 3 ? data[data.size() - 3] : std::uint8_t{0});
  }
  const Outcome outcome = on_gpu_code<512, 8192>(deflated(data, {.level = 9}), data.size());
  ASSERT_TRUE(outcome.good);
  EXPECT_TRUE(outcome.data == data);
}

TEST(Deflate, RefusesNoise) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Bytes noise = make_data(Data::noise, 700, seed);
    noise[0] = 0x78;
    noise[1] = 0x9c;
    expect_same(noise, 4'000, std::to_string(seed));
  }
}

}  // namespace deflate_test
}  // namespace batchfs::gpu
