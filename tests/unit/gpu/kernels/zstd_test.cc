#include "gpu/kernels/zstd.cuh"

#include <random>

#include <gtest/gtest.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace zstd_test {

using Bytes = std::vector<std::uint8_t>;

struct Options {
  int level = 3;
  bool checksum = false;
  bool content_size = true;
  std::size_t flush_every = 0;  // a new block after this many bytes
  int window_log = 0;
};

Bytes compressed(const Bytes& data, const Options& options) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, options.level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, options.checksum);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, options.content_size);
  if (options.window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, options.window_log);
  if (options.content_size) ZSTD_CCtx_setPledgedSrcSize(context, data.size());
  Bytes frame(ZSTD_compressBound(data.size()) + data.size() / 10 + 1000);
  ZSTD_outBuffer out{frame.data(), frame.size(), 0};
  const std::size_t share = options.flush_every > 0 ? options.flush_every : data.size() + 1;
  for (std::size_t at = 0;; at += share) {
    const bool last = data.size() - at <= share;
    ZSTD_inBuffer in{data.data() + at, last ? data.size() - at : share, 0};
    const std::size_t left =
        ZSTD_compressStream2(context, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
    EXPECT_EQ(left, 0u);
    if (last) break;
  }
  ZSTD_freeCCtx(context);
  frame.resize(out.pos);
  return frame;
}

/// Decodes `chunk`; empty if the GPU code refuses it.
Bytes on_gpu_code(const Bytes& chunk, std::size_t size, Verdict* verdict = nullptr) {
  Bytes source(5 + chunk.size(), 0xee);
  std::copy(chunk.begin(), chunk.end(), source.begin() + 5);
  DecodePlan plan;
  const Verdict v = plan.add_zstd(as_bytes(chunk), 5, 0, size);
  if (verdict != nullptr) *verdict = v;
  if (v != Verdict::planned) return {};
  Emulated result = emulate(plan, source, size);
  if (result.status[0] != kDecoded) return {};
  return result.target;
}

/// The features that an encoder chose, so that a test knows which it covered.
struct Met {
  int raw_blocks = 0, rle_blocks = 0, raw_literals = 0, rle_literals = 0, one_stream = 0,
      four_streams = 0, treeless = 0;
  int default_tables = 0, repeated_tables = 0, own_tables = 0, no_sequences = 0;

  void add(const DecodePlan& plan) {
    for (std::uint32_t i = 0; i < plan.zstd_blocks.size(); ++i) {
      const ZstdBlock& block = plan.zstd_blocks[i];
      raw_blocks += block.kind == ZstdBlockKind::raw;
      rle_blocks += block.kind == ZstdBlockKind::rle;
      if (block.kind != ZstdBlockKind::compressed) continue;
      raw_literals += block.literal_kind == LiteralKind::raw;
      rle_literals += block.literal_kind == LiteralKind::rle;
      if (block.literal_kind == LiteralKind::huffman) {
        one_stream += block.literal_streams == 1;
        four_streams += block.literal_streams == 4;
        treeless += !block.literal_tree;
      }
      no_sequences += block.sequence_count == 0;
      if (block.sequence_count == 0) continue;
      for (const std::uint32_t table : block.tables) {
        default_tables += table == kDefaultTable;
        own_tables += table == i;
        repeated_tables += table != i && table != kDefaultTable;
      }
    }
  }
};

TEST(Zstd, EqualsTheLibraryAtEveryLevelOnEveryKindOfData) {
  Met met;
  for (const Data kind : kAllData)
    for (const std::size_t size : {0, 1, 9, 300, 5000, 140'000, 300'001})
      for (const int level : {-5, -1, 1, 2, 3, 4, 5, 6, 7, 9, 12, 15, 19, 22}) {
        if (size > 140'000 && level > 9 && level != 22) continue;
        const Bytes data = make_data(kind, size);
        const Bytes frame = compressed(data, {.level = level, .checksum = level % 2 == 0});
        DecodePlan plan;
        ASSERT_EQ(plan.add_zstd(as_bytes(frame), 0, 0, size), Verdict::planned);
        met.add(plan);
        const Emulated result = emulate(plan, frame, size);
        ASSERT_EQ(result.status[0], kDecoded)
            << static_cast<int>(kind) << " " << size << " " << level;
        ASSERT_TRUE(result.target == data) << static_cast<int>(kind) << " " << size << " " << level;
      }
  EXPECT_GT(met.raw_blocks, 0);
  EXPECT_GT(met.rle_blocks, 0);
  EXPECT_GT(met.raw_literals, 0);
  EXPECT_GT(met.rle_literals, 0);
  EXPECT_GT(met.one_stream, 0);
  EXPECT_GT(met.four_streams, 0);
  EXPECT_GT(met.no_sequences, 0);
  EXPECT_GT(met.default_tables, 0);
  EXPECT_GT(met.own_tables, 0);
}

TEST(Zstd, DecodesManyBlocksThatRepeatTables) {
  Met met;
  for (const Data kind : {Data::text, Data::packed, Data::floats})
    for (const std::size_t flush : {700, 3000, 20'000})
      for (const int level : {1, 3, 9, 19}) {
        const Bytes data = make_data(kind, 120'000);
        const Bytes frame = compressed(data, {.level = level, .flush_every = flush});
        DecodePlan plan;
        ASSERT_EQ(plan.add_zstd(as_bytes(frame), 0, 0, data.size()), Verdict::planned);
        met.add(plan);
        ASSERT_TRUE(emulate(plan, frame, data.size()).target == data)
            << static_cast<int>(kind) << " " << flush << " " << level;
      }
  EXPECT_GT(met.treeless, 0);
  EXPECT_GT(met.repeated_tables, 0);
}

TEST(Zstd, DecodesFramesWithoutAContentSizeAndWithASmallWindow) {
  const Bytes data = make_data(Data::packed, 500'000);
  for (const int window : {10, 14, 17})
    for (const bool sized : {false, true}) {
      const Options options{.checksum = true,
                            .content_size = sized,
                            .flush_every = sized ? 0u : 99'999u,
                            .window_log = window};
      ASSERT_TRUE(on_gpu_code(compressed(data, options), data.size()) == data) << window << sized;
    }
}

TEST(Zstd, DecodesALongFrameWithTheKernelsOwnShape) {
  const Bytes data = make_data(Data::packed, 2'000'003);
  const Bytes frame = compressed(data, {});
  DecodePlan plan;
  ASSERT_EQ(plan.add_zstd(as_bytes(frame), 0, 0, data.size()), Verdict::planned);
  ASSERT_TRUE((emulate<512, 8192>(plan, frame, data.size()).target == data));
}

TEST(Zstd, DecodesSeveralFramesAndSkippableOnes) {
  const Bytes data = make_data(Data::text, 30'000);
  const Bytes first(data.begin(), data.begin() + 10'000), second(data.begin() + 10'000, data.end());
  Bytes chunk = compressed(first, {});
  const Bytes skippable = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
  chunk.insert(chunk.end(), skippable.begin(), skippable.end());
  const Bytes tail =
      compressed(second, {.checksum = true, .content_size = false, .flush_every = 5000});
  chunk.insert(chunk.end(), tail.begin(), tail.end());
  EXPECT_TRUE(on_gpu_code(chunk, data.size()) == data);
  EXPECT_TRUE(on_gpu_code(chunk, data.size() - 1).empty());
  EXPECT_TRUE(on_gpu_code(chunk, data.size() + 1).empty());
}

TEST(Zstd, LeavesDictionariesAndOldFormatsToTheCpu) {
  const Bytes data = make_data(Data::text, 20'000);
  Bytes frame = compressed(data, {});
  Bytes named = frame;  // a dictionary ID in the header
  named[4] |= 1;
  named.insert(named.begin() + 5, 77);
  Verdict verdict;
  on_gpu_code(named, data.size(), &verdict);
  EXPECT_EQ(verdict, Verdict::unsupported);
  frame[0] = 0x27;  // version 0.7
  on_gpu_code(frame, data.size(), &verdict);
  EXPECT_EQ(verdict, Verdict::unsupported);
}

/// Chunks that are accepted must equal libzstd's result.
testing::AssertionResult agrees(const Bytes& chunk, std::size_t size, int* accepted = nullptr) {
  const Bytes ours = on_gpu_code(chunk, size);
  if (ours.empty()) return testing::AssertionSuccess();
  if (accepted != nullptr) ++*accepted;
  Bytes theirs(size);
  const std::size_t got = ZSTD_decompress(theirs.data(), size, chunk.data(), chunk.size());
  if (ZSTD_isError(got)) return testing::AssertionFailure() << ZSTD_getErrorName(got);
  if (got != size || ours != theirs) return testing::AssertionFailure() << "other bytes";
  return testing::AssertionSuccess();
}

TEST(Zstd, AgreesWithTheLibraryOnFlippedBytes) {
  std::mt19937 random(11);
  int accepted = 0;
  for (const Data kind : kAllData)
    for (const int level : {1, 3, 19})
      for (const std::size_t flush : {0, 900}) {
        const Bytes frame =
            compressed(make_data(kind, 4000), {.level = level, .flush_every = flush});
        for (int round = 0; round < 250; ++round) {
          Bytes flipped = frame;
          for (unsigned k = 0; k <= random() % 2; ++k)
            flipped[random() % (round % 2 == 0 ? flipped.size()
                                               : std::min<std::size_t>(flipped.size(), 80))] ^=
                static_cast<std::uint8_t>(1u << random() % 8);
          ASSERT_TRUE(agrees(flipped, 4000, &accepted))
              << static_cast<int>(kind) << " " << level << " " << round;
        }
      }
  EXPECT_GT(accepted, 100);
}

TEST(Zstd, RefusesWhatAChecksumContradicts) {
  std::mt19937 random(5);
  const Bytes data = make_data(Data::noise, 3000);
  const Bytes frame = compressed(data, {.checksum = true});
  for (int round = 0; round < 200; ++round) {
    Bytes flipped = frame;
    flipped[12 + random() % (flipped.size() - 12)] ^= static_cast<std::uint8_t>(1u << random() % 8);
    ASSERT_TRUE(on_gpu_code(flipped, data.size()).empty());
  }
}

TEST(Zstd, RefusesEveryTruncation) {
  for (const Data kind : {Data::text, Data::packed, Data::zeros}) {
    const Bytes frame = compressed(make_data(kind, 4000), {});
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_TRUE(on_gpu_code(cut, 4000).empty()) << size;
    }
  }
}

/// A frame of hand-made blocks: {type, content size, content}.
Bytes frame_of(std::uint32_t content_size, std::initializer_list<Bytes> blocks) {
  Bytes frame = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};  // single segment, four bytes of content size
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<std::uint8_t>(content_size >> (8 * i)));
  for (const Bytes& block : blocks) frame.insert(frame.end(), block.begin(), block.end());
  return frame;
}

TEST(Zstd, RefusesHugeCountsWithoutTablesForThem) {
  // A block that claims 98,047 sequences, 10 bytes long, again and again.
  Bytes blocks;
  for (int i = 0; i < 1000; ++i) {
    const Bytes block = {
        0x54, 0, 0, /* raw literals */ 0, /* count */ 0xff, 0xff, 0xff, /* RLE tables */ 0x54, 0,
        0,    0, 1};
    blocks.insert(blocks.end(), block.begin(), block.end());
  }
  for (const std::uint32_t size : {100u, 100'000u, 1u << 29}) {
    const Bytes frame = frame_of(size, {blocks});
    DecodePlan plan;
    EXPECT_NE(plan.add_zstd(as_bytes(frame), 0, 0, size), Verdict::planned);
    EXPECT_EQ(plan.runs, 0u);
  }
  // A long series of empty blocks.
  Bytes empty(300'000, 0);
  empty.push_back(1);
  empty.push_back(0);
  empty.push_back(0);
  DecodePlan plan;
  const Bytes frame = frame_of(10, {empty});
  EXPECT_NE(plan.add_zstd(as_bytes(frame), 0, 0, 10), Verdict::planned);
}

/// Compresses `data` for a decoder with the prefix `before`, which ours does not have.
Bytes compressed_after(const Bytes& before, const Bytes& data) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 19);
  ZSTD_CCtx_refPrefix(context, before.data(), before.size());
  Bytes frame(ZSTD_compressBound(data.size()));
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), data.data(), data.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

TEST(Zstd, RefusesMatchesBeforeTheFrame) {
  // Few literals, then bytes that are only in `before`: nothing may be read in their place.
  const Bytes before = make_data(Data::noise, 4000);
  for (const std::size_t literals : {0, 1, 5, 40, 300})
    for (const std::size_t matched : {20, 200, 1000, 3000}) {
      Bytes data = make_data(Data::zeros, literals);
      for (std::size_t i = 0; i < literals; ++i) data[i] = static_cast<std::uint8_t>(i * i * 37);
      data.insert(data.end(), before.begin(),
                  before.begin() + static_cast<std::ptrdiff_t>(matched));
      const Bytes frame = compressed_after(before, data);
      Verdict verdict;
      EXPECT_TRUE(on_gpu_code(frame, data.size(), &verdict).empty());
      EXPECT_EQ(verdict, Verdict::planned);
    }
}

TEST(Zstd, RefusesSectionsOfNoise) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Bytes content = make_data(Data::noise, 40 + seed % 200, seed);
    const auto size = static_cast<std::uint32_t>(content.size());
    Bytes block = {static_cast<std::uint8_t>(size << 3 | 5), static_cast<std::uint8_t>(size >> 5),
                   0};
    // Plausible beginnings, so that noise gets as far as the tables and the streams.
    if (seed % 3 == 0) content[0] = 0x10;                            // two raw literals
    if (seed % 3 == 1) content[0] = 0x02 | 0x40, content[1] = 0x08;  // Huffman, one stream
    if (seed % 3 == 0) content[3] = 5, content[4] = static_cast<std::uint8_t>(content[4] & 0xfc);
    block.insert(block.end(), content.begin(), content.end());
    ASSERT_TRUE(agrees(frame_of(1000, {block}), 1000)) << seed;
  }
}

}  // namespace zstd_test
}  // namespace batchfs::gpu
