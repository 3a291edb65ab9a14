// The kernels on a real GPU: frames of tests/unit/gpu, decoded by the device, must equal the
// results of the same code on the host, status by status and byte by byte. Without a GPU the tests
// skip.

#include "tests/gpu/device_decoder.h"

#include <random>

#include <blosc.h>
#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include "gpu/stream/cuda_devices.h"
#include "tests/unit/gpu/deflated.h"
#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace device_test {

using Bytes = std::vector<std::uint8_t>;

enum class Coding { blosc, zstd, lz4, zlib, gzip, shuffled_zlib };

/// A batch of chunks of `size` bytes each, or of any sizes.
class Batch {
 public:
  void add(Coding coding, const Bytes& chunk, std::size_t size, Bytes expected = {}) {
    const std::uint64_t at = source_.size();
    Verdict verdict = Verdict::damaged;
    if (coding == Coding::blosc) verdict = plan_.add_blosc(as_bytes(chunk), at, target_size_, size);
    if (coding == Coding::zstd) verdict = plan_.add_zstd(as_bytes(chunk), at, target_size_, size);
    if (coding == Coding::lz4) verdict = plan_.add_lz4(as_bytes(chunk), at, target_size_, size);
    if (coding == Coding::zlib || coding == Coding::shuffled_zlib)
      verdict = plan_.add_deflate(as_bytes(chunk), DeflateFormat::zlib, at, target_size_, size,
                                  coding == Coding::shuffled_zlib ? 4 : 1);
    if (coding == Coding::gzip)
      verdict = plan_.add_deflate(as_bytes(chunk), DeflateFormat::gzip, at, target_size_, size);
    if (verdict != Verdict::planned) return;
    source_.insert(source_.end(), chunk.begin(), chunk.end());
    begins_.push_back(target_size_);
    sizes_.push_back(size);
    expected_.push_back(std::move(expected));
    target_size_ += size;
  }

  /// Decodes on the device and on the host; returns how many chunks both decoded.
  int compare() {
    plan_.finish();
    DeviceDecoder decoder(0);
    PinnedBuffer pinned(source_.size() + 1);
    std::memcpy(pinned.data(), source_.data(), source_.size());
    decoder.start(plan_, pinned.data(), source_.size(), target_size_);
    const auto statuses = decoder.finish();
    Bytes decoded(target_size_);
    decoder.read(0, std::as_writable_bytes(std::span(decoded)));
    const Emulated host = emulate<512, 8192>(plan_, source_, target_size_);
    int both = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      EXPECT_EQ(statuses[i], host.status[i]) << "chunk " << i;
      if (statuses[i] != kDecoded || host.status[i] != kDecoded) continue;
      ++both;
      const auto begin = static_cast<std::ptrdiff_t>(begins_[i]),
                 end = begin + static_cast<std::ptrdiff_t>(sizes_[i]);
      EXPECT_TRUE(
          std::equal(decoded.begin() + begin, decoded.begin() + end, host.target.begin() + begin))
          << "chunk " << i;
      const Bytes& expected = expected_[i];
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), decoded.begin() + begin))
          << "chunk " << i;
    }
    return both;
  }

  std::size_t chunks() const { return sizes_.size(); }

 private:
  DecodePlan plan_;
  Bytes source_;
  std::uint64_t target_size_ = 0;
  std::vector<std::uint64_t> begins_, sizes_;
  std::vector<Bytes> expected_;
};

Bytes zstd_of(const Bytes& data, int level, bool checksum = false) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
  Bytes frame(ZSTD_compressBound(data.size()));
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), data.data(), data.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

Bytes lz4_of(const Bytes& data) {
  Bytes chunk(4 + static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(data.size()))));
  const auto size = static_cast<std::uint32_t>(data.size());
  std::memcpy(chunk.data(), &size, sizeof size);
  chunk.resize(
      4 + static_cast<std::size_t>(LZ4_compress_default(
              reinterpret_cast<const char*>(data.data()), reinterpret_cast<char*>(chunk.data() + 4),
              static_cast<int>(size), static_cast<int>(chunk.size() - 4))));
  return chunk;
}

/// HDF5's and numcodecs' shuffle of four bytes.
Bytes shuffled(const Bytes& data) {
  Bytes planes = data;
  const std::size_t items = data.size() / 4;
  for (std::size_t i = 0; i < 4 * items; ++i) planes[i % 4 * items + i / 4] = data[i];
  return planes;
}

Bytes blosc_of(const Bytes& data, const char* codec, int shuffle, std::size_t item) {
  Bytes chunk(data.size() + BLOSC_MAX_OVERHEAD);
  chunk.resize(static_cast<std::size_t>(blosc_compress_ctx(
      5, shuffle, item, data.size(), data.data(), chunk.data(), chunk.size(), codec, 0, 1)));
  return chunk;
}

class Device : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_device(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(Device, DecodesEveryKindOfDataInOneBatch) {
  Batch batch;
  for (const Data kind : kAllData)
    for (const std::size_t size : {1, 300, 5000, 131'072, 300'001}) {
      const Bytes data = make_data(kind, size);
      batch.add(Coding::lz4, lz4_of(data), size, data);
      for (const int level : {-5, 1, 3, 19})
        batch.add(Coding::zstd, zstd_of(data, level, level == 3), size, data);
      for (const int level : {0, 1, 4, 9})
        for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE}) {
          batch.add(Coding::zlib, deflated(data, {.level = level, .strategy = strategy}), size,
                    data);
          batch.add(Coding::gzip,
                    deflated(data, {.level = level, .strategy = strategy, .gzip = true}), size,
                    data);
        }
      batch.add(Coding::shuffled_zlib, deflated(shuffled(data), {.level = 4}), size, data);
      for (const char* codec : {"lz4", "zlib", "zstd"})
        for (const int shuffle : {BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE})
          for (const std::size_t item : {1, 2, 4, 8, 12})
            batch.add(Coding::blosc, blosc_of(data, codec, shuffle, item), size, data);
    }
  ASSERT_GT(batch.chunks(), 1000u);
  EXPECT_EQ(batch.compare(), static_cast<int>(batch.chunks()));
}

TEST_F(Device, DecodesLongChunks) {
  Batch batch;
  const Bytes data = make_data(Data::packed, 4'000'001);
  batch.add(Coding::lz4, lz4_of(data), data.size(), data);
  batch.add(Coding::zstd, zstd_of(data, 3), data.size(), data);
  batch.add(Coding::blosc, blosc_of(data, "lz4", BLOSC_SHUFFLE, 4), data.size(), data);
  batch.add(Coding::blosc, blosc_of(data, "zstd", BLOSC_SHUFFLE, 4), data.size(), data);
  batch.add(Coding::shuffled_zlib, deflated(shuffled(data), {.level = 4}), data.size(), data);
  for (const int memory : {4, 8, 9})  // blocks of 1, 16 and 32 thousand symbols
    for (const Data kind : kAllData) {
      const Bytes other = make_data(kind, 4'000'001);
      batch.add(Coding::zlib, deflated(other, {.level = 4, .memory = memory}), other.size(), other);
    }
  EXPECT_EQ(batch.compare(), static_cast<int>(batch.chunks()));
}

TEST_F(Device, RefusesDamagedChunksAsTheHostDoes) {
  std::mt19937 random(3);
  for (const Coding coding :
       {Coding::lz4, Coding::zstd, Coding::blosc, Coding::zlib, Coding::gzip}) {
    Batch batch;
    for (const Data kind : kAllData) {
      const Bytes data = make_data(kind, 6000);
      const Bytes chunk = coding == Coding::lz4    ? lz4_of(data)
                          : coding == Coding::zstd ? zstd_of(data, 3)
                          : coding == Coding::zlib ? deflated(data)
                          : coding == Coding::gzip ? deflated(data, {.gzip = true})
                                                   : blosc_of(data, "zstd", BLOSC_SHUFFLE, 4);
      for (int round = 0; round < 150; ++round) {
        Bytes damaged = chunk;
        const std::size_t reach =
            round % 2 == 0 ? damaged.size() : std::min<std::size_t>(100, damaged.size());
        damaged[random() % reach] ^= static_cast<std::uint8_t>(1u << random() % 8);
        if (round % 10 == 0) damaged.resize(1 + random() % damaged.size());
        batch.add(coding, damaged, data.size());
      }
    }
    ASSERT_GT(batch.chunks(), 100u);
    batch.compare();
  }
}

TEST_F(Device, ADecoderIsUsedAgain) {
  DeviceDecoder decoder(0);
  for (const std::size_t size : {100'000, 10, 500'000}) {
    const Bytes data = make_data(Data::text, size), chunk = zstd_of(data, 3);
    DecodePlan plan;
    ASSERT_EQ(plan.add_zstd(as_bytes(chunk), 0, 0, size), Verdict::planned);
    plan.finish();
    PinnedBuffer pinned(chunk.size());
    std::memcpy(pinned.data(), chunk.data(), chunk.size());
    decoder.start(plan, pinned.data(), chunk.size(), size);
    ASSERT_EQ(decoder.finish()[0], kDecoded);
    Bytes decoded(size);
    decoder.read(0, std::as_writable_bytes(std::span(decoded)));
    EXPECT_TRUE(decoded == data);
  }
}

}  // namespace device_test
}  // namespace batchfs::gpu
