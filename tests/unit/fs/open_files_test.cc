#include "fs/open_files.h"

#include <gmock/gmock.h>

#include "fs/formats/npy.h"
#include "tests/unit/eventually.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace open_files_test {

std::string text_of(const std::vector<std::int32_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

TEST(TextFile, IsReadInPieces) {
  TextFile file("hello", OpenFile::Caching::kernel);
  EXPECT_EQ(Mounted::read(file, 0, 100), "hello");
  EXPECT_EQ(Mounted::read(file, 1, 3), "ell");
  EXPECT_EQ(Mounted::read(file, 5, 1), "");
  EXPECT_EQ(Mounted::read(file, UINT64_MAX, UINT64_MAX), "");
  EXPECT_EQ(Mounted::read(file, 4, UINT64_MAX), "o");
  EXPECT_EQ(file.caching(), OpenFile::Caching::kernel);
  EXPECT_EQ(file.memory_file(), nullptr);
}

TEST(SealedFile, LivesAsLongAsItIsOpen) {
  auto memory = std::make_shared<MemoryFile>(MemoryFiles(false).create("test", 5));
  std::memcpy(memory->data(), "bytes", 5);
  memory->seal();
  std::weak_ptr<MemoryFile> watched = memory;
  auto file = std::make_unique<SealedFile>(memory.get(), memory);
  memory.reset();
  EXPECT_EQ(Mounted::read(*file, 1, 3), "yte");
  EXPECT_EQ(Mounted::read(*file, 3, 30), "es");
  EXPECT_EQ(Mounted::read(*file, 5, 1), "");
  EXPECT_NE(file->memory_file(), nullptr);
  file.reset();
  EXPECT_TRUE(watched.expired());
}

struct ValuesFileTest : testing::Test {
  /// 50 by 7 int32 in chunks of 8 by 3, one of them missing.
  ValuesFileTest() {
    const std::vector<std::int32_t> all = counting<std::int32_t>(350);
    data.declare("v", "<i4", {"y", "x"}, {50, 7}, {8, 3}, Json::object(), -1);
    for (int cy = 0; cy < 7; ++cy)
      for (int cx = 0; cx < 3; ++cx) {
        std::vector<std::int32_t> chunk(24, -9);
        for (int y = 0; y < 8 && 8 * cy + y < 50; ++y)
          for (int x = 0; x < 3 && 3 * cx + x < 7; ++x)
            chunk[static_cast<std::size_t>(3 * y + x)] = 7 * (8 * cy + y) + 3 * cx + x;
        if (cy != 2 || cx != 1)
          data.store->objects["v/" + std::to_string(cy) + "." + std::to_string(cx)] =
              text_of(chunk);
      }
    std::vector<std::int32_t> values = all;
    for (std::size_t y = 16; y < 24; ++y)
      for (std::size_t x = 3; x < 6; ++x) values[7 * y + x] = -1;
    expected = npy_header(parse_numpy_type("int32"), {50, 7}) + text_of(values);
  }
  MemoryData data;
  std::string expected;
};

TEST_F(ValuesFileTest, AnyPartIsTheSamePartOfTheWhole) {
  Mounted mounted(data);
  const auto file = mounted.open(mounted.find("arrays/v/values.npy")->number);
  ASSERT_EQ(mounted.find("arrays/v/values.npy")->size, expected.size());
  for (std::uint64_t offset : {0, 1, 100, 4000, 4093, 4095, 4096, 4097, 4098, 4100, 4099 + 16 * 28,
                               5000, 5490, 5495, 5496, 6000})
    for (std::uint64_t size : {0, 1, 2, 3, 4, 5, 7, 96, 97, 1000, 100000}) {
      const std::string part = offset < expected.size() ? expected.substr(offset, size) : "";
      ASSERT_EQ(Mounted::read(*file, offset, size), part) << offset << " " << size;
    }
  EXPECT_EQ(Mounted::read(*file, UINT64_MAX, 1), "");
  EXPECT_EQ(Mounted::read(*file, UINT64_MAX - 5, UINT64_MAX), "");
  EXPECT_EQ(Mounted::read(*file, 0, UINT64_MAX), expected);
}

TEST_F(ValuesFileTest, IsReadInOrderInPiecesOfAnySize) {
  Mounted mounted(data);
  for (std::uint64_t piece : {1, 3, 1000, 4096, 131072})
    EXPECT_EQ(mounted.read(mounted.find("arrays/v/values.npy")->number, piece), expected) << piece;
}

TEST_F(ValuesFileTest, ManyReadersAtOnce) {
  Mounted mounted(data);
  const auto file = mounted.open(mounted.find("arrays/v/values.npy")->number);
  std::vector<std::future<bool>> readers;
  for (std::uint64_t r = 0; r < 8; ++r)
    readers.push_back(std::async(std::launch::async, [&, r] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        const std::uint64_t offset = (r * 977 + i * 131) % expected.size();
        if (Mounted::read(*file, offset, 300) != expected.substr(offset, 300)) return false;
      }
      return true;
    }));
  for (auto& reader : readers) EXPECT_TRUE(reader.get());
}

TEST(ValuesFile, IsTheSameFromCachedChunks) {
  // Whole steps in a chunk: its elements are one run of the file's.
  MemoryData data;
  std::string raw;
  for (int i = 0; i < 40 * 6 * 13; ++i) raw += static_cast<char>('a' + i % 26);
  data.declare("s", "|S13", {"t", "x"}, {40, 6}, {4, 6});
  for (std::size_t c = 0; c < 10; ++c)
    if (c != 7) data.store->objects["s/" + std::to_string(c) + ".0"] = raw.substr(312 * c, 312);
  std::fill_n(raw.begin() + 7 * 312, 312, '\0');
  Mounted mounted(data);
  const std::string whole = npy_header(data.hierarchy.arrays.at("s").type, {40, 6}) + raw;
  const FileNumber number = mounted.find("arrays/s/values.npy")->number;
  EXPECT_EQ(mounted.read(number, 1 << 20), whole);
  const auto file = mounted.open(number);
  const std::uint64_t hits = mounted.engine().counters().chunk_cache_hits;
  for (std::uint64_t offset : {0, 4000, 4096, 4097, 4400, 5000, 6300, 7000})
    for (std::uint64_t size : {1, 12, 13, 14, 312, 700, 100000})
      ASSERT_EQ(Mounted::read(*file, offset, size), whole.substr(offset, size))
          << offset << " " << size;
  EXPECT_GT(mounted.engine().counters().chunk_cache_hits, hits);
}

/// Reads that follow one another have this many chunks decoded, without a read of them.
bool are_decoded(Mounted& mounted, std::uint64_t count) {
  return eventually([&] { return mounted.engine().counters().chunks_decoded >= count; });
}

TEST(ValuesFile, RequestsOfOneReadMayComeInAnyOrder) {
  constexpr std::uint64_t kChunk = 1 << 20;
  MemoryData data;
  data.declare("v", "|u1", {"x"}, {24 * kChunk}, {kChunk});
  Mounted mounted(data);
  const auto file = mounted.open(mounted.find("arrays/v/values.npy")->number);
  Mounted::read(*file, 0, 4096);
  Mounted::read(*file, 4096 + kChunk, kChunk);
  Mounted::read(*file, 4096, kChunk);
  EXPECT_TRUE(are_decoded(mounted, 18));
}

TEST(ValuesFile, AReadFarAwayHasNothingDecodedAhead) {
  constexpr std::uint64_t kChunk = 1 << 20;
  MemoryData data;
  data.declare("v", "|u1", {"x"}, {24 * kChunk}, {kChunk});
  Mounted mounted(data);
  const auto file = mounted.open(mounted.find("arrays/v/values.npy")->number);
  for (const std::uint64_t chunk : {3, 17, 9}) Mounted::read(*file, 4096 + chunk * kChunk, 1000);
  EXPECT_EQ(mounted.engine().counters().chunks_decoded, 3u);
}

TEST(ValuesFile, AChunkForEachProcessorIsDecodedAhead) {
  constexpr std::uint64_t kChunk = 12 << 20;
  MemoryData data;
  const Json shuffle = {{"id", "shuffle"}, {"elementsize", 1}};  // the chunk is one piece
  const Json zarray = {{"zarr_format", 2},
                       {"shape", {6 * kChunk}},
                       {"chunks", {kChunk}},
                       {"dtype", "|u1"},
                       {"compressor", nullptr},
                       {"order", "C"},
                       {"filters", Json::array({shuffle})},
                       {"fill_value", 0}};
  data.hierarchy.arrays["v"] = parse_array_v2("v", zarray, {{"_ARRAY_DIMENSIONS", {"x"}}}, "v");
  Mounted mounted(data);
  const auto file = mounted.open(mounted.find("arrays/v/values.npy")->number);
  for (const std::uint64_t offset : {0, 4096, 8192}) Mounted::read(*file, offset, 4096);
  EXPECT_TRUE(are_decoded(mounted, 3)) << "the one that is read, and two";
}

TEST(ValuesFile, OfElementsOfAnySize) {
  MemoryData data;
  std::string raw;
  for (int i = 0; i < 5 * 13; ++i) raw += static_cast<char>('a' + i % 26);
  data.declare("s", "|S13", {"x"}, {5}, {5});
  data.store->objects["s/0"] = raw;
  Mounted mounted(data);
  const std::string whole = npy_header(data.hierarchy.arrays.at("s").type, {5}) + raw;
  for (std::uint64_t piece : {1, 5, 13, 14, 4100})
    EXPECT_EQ(mounted.read(mounted.find("arrays/s/values.npy")->number, piece), whole);
}

TEST(ValuesFile, OfHugeArraysReadsOnlyWhatIsAskedFor) {
  MemoryData data;
  const std::int64_t n = INT64_C(1) << 40;
  data.declare("v", "<f8", {"x"}, {n}, {1 << 16}, Json::object(), 2.5);
  Mounted mounted(data);
  const auto found = mounted.find("arrays/v/values.npy");
  EXPECT_EQ(found->size, 4096 + 8 * static_cast<std::uint64_t>(n));
  const auto file = mounted.open(found->number);
  EXPECT_EQ(
      numbers<double>(Mounted::read(*file, 4096 + 8 * static_cast<std::uint64_t>(n - 3), 100)),
      (std::vector<double>{2.5, 2.5, 2.5}));
}

TEST(ValuesFile, OfEmptyArraysIsAHeader) {
  MemoryData data;
  data.declare("v", "<f8", {"x", "y"}, {0, 3}, {1, 3});
  Mounted mounted(data);
  EXPECT_EQ(mounted.read("arrays/v/values.npy"), npy_header(float64(), {0, 3}));
}

}  // namespace open_files_test
}  // namespace batchfs
