#include "engine/array/pieces.h"

#include <blosc.h>

#include "engine/array/array.h"
#include "tests/unit/engine/codec/damage.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace pieces_test {

constexpr std::int64_t kRows = 400, kColumns = 500;

std::int32_t value(std::int64_t row, std::int64_t column) {
  // Half of its bytes are noise: the stored chunk is a few hundred kilobytes.
  const auto noise = static_cast<std::uint32_t>(row * kColumns + column) * 2654435761u;
  return static_cast<std::int32_t>(row * 65536 + (noise >> 16));
}

/// One chunk of 400 by 500 values, compressed by c-blosc in blocks of `block` bytes.
Bytes frame(std::size_t block, int level = 5) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j) values.push_back(value(i, j));
  Bytes encoded(values.size() * 4 + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(level, BLOSC_SHUFFLE, 4, values.size() * 4, values.data(),
                                      encoded.data(), encoded.size(), "lz4", block, 1);
  encoded.resize(static_cast<std::size_t>(size));
  return encoded;
}

struct Written {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::unique_ptr<Array> array;

  explicit Written(Bytes stored) {
    store->local = false;
    store->set("a/0.0", std::move(stored));
    const Json zarray = {{"zarr_format", 2},
                         {"shape", {kRows, kColumns}},
                         {"chunks", {kRows, kColumns}},
                         {"dtype", "<i4"},
                         {"compressor", {{"id", "blosc"}}},
                         {"filters", nullptr},
                         {"fill_value", -1},
                         {"order", "C"}};
    array = std::make_unique<Array>(store, std::make_shared<const ArrayMetadata>(
                                               parse_array_v2("a", zarray, Json::object(), "a")));
  }

  /// Throws the error of fetching.
  std::shared_ptr<const EncodedChunk> fetch(const Box& part,
                                            std::shared_ptr<const EncodedChunk> have = nullptr) {
    std::shared_ptr<const EncodedChunk> got;
    std::exception_ptr failed;
    array->fetch_pieces({0, 0}, part, std::move(have), [&](auto outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome))
        failed = *error;
      else
        got = std::make_shared<const EncodedChunk>(std::move(std::get<EncodedChunk>(outcome)));
    });
    if (failed) std::rethrow_exception(failed);
    return got;
  }

  std::vector<std::int32_t> decode(const EncodedChunk& encoded, const Box& part) const {
    std::vector<std::int32_t> out(static_cast<std::size_t>(part.elements()));
    array->decode({0, 0}, encoded, part, reinterpret_cast<std::byte*>(out.data()),
                  c_strides(part.shape, 4));
    return out;
  }

  std::uint64_t bytes_read() const {
    std::uint64_t sum = 0;
    for (const MemoryStore::Read& read : store->reads) sum += read.bytes;
    return sum;
  }
};

std::vector<std::int32_t> expected(const Box& part) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < part.shape[0]; ++i)
    for (std::int64_t j = 0; j < part.shape[1]; ++j)
      values.push_back(value(part.start[0] + i, part.start[1] + j));
  return values;
}

template <class Work>
Error failure(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::internal, "no error");
}

const std::vector<Box> kParts = {{{0, 0}, {1, 500}},   {{399, 499}, {1, 1}}, {{100, 20}, {3, 40}},
                                 {{101, 0}, {2, 500}}, {{0, 0}, {1, 1}},     {{250, 7}, {30, 11}}};

TEST(Pieces, ArePartOfTheStoredChunkAndDecodeToTheSame) {
  for (std::size_t block : {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{256}}) {
    for (int level : {0, 5}) {  // level 0 stores
      SCOPED_TRACE(fmt::format("{} {}", block, level));
      const Bytes stored = frame(block, level);
      for (const Box& part : kParts) {
        Written written(stored);
        const auto got = written.fetch(part);
        EXPECT_TRUE(written.array->holds(*got, part));
        EXPECT_EQ(written.decode(*got, part), expected(part));
        EXPECT_LT(written.bytes_read(), stored.size());
        EXPECT_LE(got->held(), written.bytes_read());
      }
    }
  }
}

TEST(Pieces, AreTakenOver) {
  Written written(frame(16 << 10));
  std::shared_ptr<const EncodedChunk> have;
  for (const Box& part : kParts) {
    if (have) {
      EXPECT_EQ(written.decode(*have, kParts[0]), expected(kParts[0]));
    }
    have = written.fetch(part, have);
    EXPECT_EQ(written.decode(*have, part), expected(part));
  }
  const std::size_t reads = written.store->reads.size();
  for (const Box& part : kParts) {
    EXPECT_TRUE(written.array->holds(*have, part));
    EXPECT_EQ(written.decode(*written.fetch(part, have), part), expected(part));
  }
  EXPECT_EQ(written.store->reads.size(), reads) << "all of it was there";
  const Box whole{{0, 0}, {kRows, kColumns}};
  EXPECT_FALSE(written.array->holds(*have, whole));
  EXPECT_EQ(failure([&] { written.decode(*have, whole); }).code(), ErrorCode::internal);
  have = written.fetch(whole, have);
  EXPECT_EQ(written.decode(*have, whole), expected(whole));
}

TEST(Pieces, OfSmallAndMissingChunks) {
  Bytes small = frame(64 << 10);
  std::vector<std::int32_t> zeros(kRows * kColumns);
  const int size = blosc_compress_ctx(5, BLOSC_SHUFFLE, 4, zeros.size() * 4, zeros.data(),
                                      small.data(), small.size(), "lz4", 1 << 20, 1);
  small.resize(static_cast<std::size_t>(size));
  ASSERT_LT(small.size(), 4096u + 4096u);
  Written written(small);
  EXPECT_EQ(written.decode(*written.fetch(kParts[2]), kParts[2]), std::vector<std::int32_t>(120));
  written.store->objects.clear();
  const auto missing = written.fetch(kParts[0]);
  EXPECT_TRUE(missing->missing);
  EXPECT_EQ(written.decode(*missing, kParts[0]), std::vector<std::int32_t>(500, -1));
}

TEST(Pieces, FailuresAreNoMissingChunks) {
  Written written(frame(64 << 10));
  const auto have = written.fetch(kParts[0]);
  written.store->objects.clear();
  EXPECT_EQ(failure([&] { written.fetch(kParts[1], have); }).code(), ErrorCode::stale);
  Written failing(frame(64 << 10));
  failing.store->failing.insert("a/0.0");
  const Error error = failure([&] { failing.fetch(kParts[0]); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_EQ(error.where(), "a/0.0");
}

TEST(Pieces, OfDamagedChunksAreErrorsOrStayInside) {
  const Bytes good = frame(64 << 10);
  for (std::size_t size :
       {std::size_t{0}, std::size_t{10}, std::size_t{4095}, std::size_t{5000}, good.size() - 1}) {
    Written written(slice(good, 0, size));
    const Error error = failure([&] { written.decode(*written.fetch(kParts[1]), kParts[1]); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << size;
    EXPECT_THAT(error.where(), testing::HasSubstr("a/0.0"));
  }
  Bytes damaged = good;
  for (std::size_t i = 0; i < 80; ++i) {
    for (int mask : {0x01, 0x10, 0x80, 0xff}) {
      damaged[i] = good[i] ^ static_cast<std::byte>(mask);
      Written written(damaged);
      try {
        written.decode(*written.fetch(kParts[2]), kParts[2]);
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
      }
    }
    damaged[i] = good[i];
  }
}

}  // namespace pieces_test
}  // namespace batchfs
