#include "engine/pipeline/chunks/chunk_costs.h"

#include <cstring>

#include <gtest/gtest.h>

namespace batchfs {
namespace chunk_costs_test {

/// Reports a speed, and holds objects of one size, or none.
class SpeedStore final : public Store {
 public:
  std::string url() const override { return "fake"; }
  std::optional<Buffer> read(const std::string&, ByteRange) override {
    if (stored == 0) return std::nullopt;
    return Buffer(stored);
  }
  std::optional<PartRead> read_into(const std::string&, std::uint64_t,
                                    std::span<std::byte>) override {
    return std::nullopt;
  }
  std::optional<std::uint64_t> size(const std::string&) override { return std::nullopt; }
  std::vector<Entry> list(const std::string&) override { return {}; }
  std::optional<Speed> speed() const override { return says; }

  std::uint64_t stored = 0;  // bytes of each object
  std::optional<Speed> says =
      Speed{.latency = 0.05, .rate = 1e6, .in_flight = 50};  // a request costs 1000 bytes
};

constexpr const char* kBlosc =
    R"({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0})";

/// 25 steps of 100 float32, in chunks of 10 steps: 4000 bytes.
struct Data {
  explicit Data(const std::string& compressor) : store(std::make_shared<SpeedStore>()) {
    const std::string zarray =
        R"({"zarr_format": 2, "shape": [25, 100], "chunks": [10, 100], "dtype": "<f4", "order": "C",
                                   "fill_value": null, "filters": null, "compressor": )" +
        compressor + "}";
    array = std::make_shared<const Array>(
        store, std::make_shared<const ArrayMetadata>(
                   parse_array_v2("v", parse_json(zarray, "v"), Json::object(), "v")));
  }
  Box box(std::int64_t chunk, const Box& need, const std::vector<Box>& wanted,
          std::size_t later = 0, bool keeps = false) const {
    return choose_decoding(*array, chunk, need, wanted, later, keeps).box;
  }
  std::shared_ptr<SpeedStore> store;
  std::shared_ptr<const Array> array;
};

Box steps(std::int64_t first, std::int64_t count) { return {{first, 0}, {count, 100}}; }
const Box kWhole = steps(0, 10);

TEST(ChunkCosts, AUseNeedsTheBoxAroundItsParts) {
  Assembly assembly;
  assembly.uses.push_back({nullptr, 0, 1, 2});
  for (const Box& source : {steps(9, 1), steps(2, 1), Box{{4, 10}, {2, 5}}})
    assembly.parts.push_back({source, nullptr, {}, nullptr});
  EXPECT_EQ(needed(assembly, assembly.uses[0]), steps(2, 4));
}

TEST(ChunkCosts, TheLastChunkEndsWithTheArray) {
  const Data data("null");
  EXPECT_EQ(whole_chunk(*data.array, 0), kWhole);
  EXPECT_EQ(whole_chunk(*data.array, 2), steps(0, 5));
}

TEST(ChunkCosts, WhatCannotBeDecodedInPartIsDecodedWhole) {
  const Data data(R"({"id": "zstd", "level": 1})");
  EXPECT_EQ(data.box(0, steps(2, 1), {}), kWhole);
  EXPECT_EQ(data.box(2, steps(2, 1), {steps(2, 1)}), steps(0, 5));
}

TEST(ChunkCosts, OfAPlainChunkWhatIsNeededIsRead) {
  const Data data("null");
  EXPECT_EQ(data.box(0, steps(2, 1), {}), steps(2, 1));
  // One read of everything adjacent, but not of unneeded data.
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1), steps(3, 2)}), steps(2, 3));
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1), steps(8, 1)}), steps(2, 1));
  EXPECT_EQ(data.box(0, steps(2, 1), {}, 50, true), steps(2, 1)) << "later uses read their own";
}

TEST(ChunkCosts, OfABlockedChunkWhatIsCheapestForAll) {
  const Data data(kBlosc);
  EXPECT_EQ(data.box(0, steps(2, 1), {}), steps(2, 1));
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1), steps(3, 1)}), steps(2, 2));
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1), steps(8, 1)}), steps(2, 1))
      << "0.30 of the chunk in two parts, 0.75 at once";
  EXPECT_EQ(data.box(0, steps(0, 3), {steps(0, 3), steps(3, 3), steps(7, 3)}), kWhole)
      << "1.05 in three parts";
}

TEST(ChunkCosts, UsesToComeAreCounted) {
  const Data data(kBlosc);
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1)}, 4), steps(2, 1))
      << "0.15 and four times as much: 0.75";
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1)}, 5), kWhole);
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1)}, 1, true), kWhole) << "it can be kept for good";
}

TEST(ChunkCosts, AChoiceHasItsReasonAndFigures) {
  using enum DecodeChoice::Why;
  const Data blosc(kBlosc), zstd(R"({"id": "zstd", "level": 1})"), plain("null");
  const auto why = [](const Data& data, std::size_t later, bool keeps) {
    return choose_decoding(*data.array, 0, steps(2, 1), {}, later, keeps);
  };
  EXPECT_EQ(why(zstd, 0, false).why, only_whole);
  EXPECT_EQ(why(plain, 5, true).why, uncompressed);
  EXPECT_EQ(why(blosc, 1, true).why, stays);
  EXPECT_EQ(why(blosc, 4, false).why, part_is_less);
  const DecodeChoice whole = why(blosc, 5, false);
  EXPECT_EQ(whole.why, parts_cost);
  EXPECT_NEAR(whole.parts, 0.15, 1e-9);
  EXPECT_NEAR(whole.later, 0.75, 1e-9);
  EXPECT_GE(whole.parts + whole.later, kMaxPartCost);
}

TEST(ChunkCosts, BytesThatADecodedBoxCountsAs) {
  const Data blosc(kBlosc), zstd(R"({"id": "zstd", "level": 1})"), plain("null");
  EXPECT_EQ(decoded_bytes(*zstd.array, steps(2, 1), false), 4000u);
  EXPECT_EQ(decoded_bytes(*blosc.array, steps(2, 5), false), 2000u);
  EXPECT_EQ(decoded_bytes(*blosc.array, steps(2, 6), false), 4000u) << "more than half";
  EXPECT_EQ(decoded_bytes(*blosc.array, steps(2, 6), true), 2400u);
  EXPECT_EQ(decoded_bytes(*plain.array, steps(2, 6), false), 2400u);
  EXPECT_EQ(decoded_bytes(*plain.array, {{2, 50}, {2, 10}}, false), 440u) << "with what is between";
  EXPECT_FALSE(is_decoded_in_part(*plain.array, kWhole, false));
  EXPECT_TRUE(is_decoded_in_part(*plain.array, steps(2, 6), false));
}

// A Blosc frame that is not compressed, with blocks of 400 bytes, is decoded: a part that begins or
// ends inside a block costs one more.
TEST(ChunkCosts, OnceDecodedTheSizeOfBlocksCounts) {
  const Data data(kBlosc);
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1)}, 4), steps(2, 1));
  EXPECT_EQ(data.array->largest_block(), 0u);
  EncodedChunk frame{.bytes = Buffer(4016)};
  frame.missing = false;
  std::memset(frame.bytes.data(), 0, frame.bytes.size());
  const std::uint32_t header[] = {0x04030102, 4000, 400, 4016};  // copied, shuffled, of 4 bytes
  std::memcpy(frame.bytes.data(), header, sizeof header);
  std::vector<float> values(100, 1);
  data.array->decode({0, 0}, frame, steps(2, 1), reinterpret_cast<std::byte*>(values.data()),
                     {400, 4});
  EXPECT_EQ(values, std::vector<float>(100, 0));
  EXPECT_EQ(data.array->largest_block(), 400u);
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1)}, 7), steps(2, 1)) << "0.1 eight times: 0.8";
  EXPECT_EQ(data.box(0, steps(2, 1), {steps(2, 1)}, 8), kWhole);
  const Box off{{2, 50}, {1, 60}};  // of two blocks
  EXPECT_EQ(data.box(0, off, {off}, 3), off) << "0.2 four times: 0.8";
  EXPECT_EQ(data.box(0, off, {off}, 4), kWhole);
  EXPECT_EQ(data.box(0, steps(0, 5), {steps(0, 5), steps(1, 5), steps(3, 5)}), steps(0, 8))
      << "0.8, since they share blocks";
  EXPECT_EQ(data.box(0, steps(0, 5), {steps(0, 5), steps(1, 5), steps(4, 5)}), kWhole);
  const Box narrow{{2, 10}, {3, 5}}, last{{2, 99}, {3, 1}};
  EXPECT_EQ(data.box(0, narrow, {narrow}), narrow);
  EXPECT_EQ(data.box(0, narrow, {narrow, steps(8, 1)}), steps(2, 3)) << "others may want the rest";
  EXPECT_EQ(data.box(0, last, {last, steps(8, 1)}), steps(2, 3));
  EXPECT_EQ(data.box(2, narrow, {narrow, steps(0, 1)}), steps(2, 3));
}

TEST(ChunkCosts, PiecesAreFetchedWhereTheyCostLessThanTheWhole) {
  const Data data(kBlosc);
  // The whole: 2000 bytes and a request, 3000 in all. A step: 300 and two requests, since its place
  // must be requested, too.
  EXPECT_TRUE(choose_fetching(*data.array, 0, steps(2, 1), 1, nullptr).in_pieces);
  EXPECT_FALSE(choose_fetching(*data.array, 0, steps(2, 1), 2, nullptr).in_pieces)
      << "2600 and a request more";
  data.store->says->latency = 0.005;
  EXPECT_TRUE(choose_fetching(*data.array, 0, steps(2, 1), 4, nullptr).in_pieces)
      << "1700 of 2100, with requests of 100";
  EXPECT_FALSE(choose_fetching(*data.array, 0, steps(2, 1), 6, nullptr).in_pieces);
  EXPECT_FALSE(choose_fetching(*data.array, 0, kWhole, 1, nullptr).in_pieces);
  EXPECT_FALSE(choose_fetching(*data.array, 2, steps(0, 5), 1, nullptr).in_pieces)
      << "all that there is of the last chunk";
}

TEST(ChunkCosts, WhatIsKnownOfAChunkIsCounted) {
  const Data data(kBlosc);
  EncodedChunk known;
  known.stored_size = 10000;  // it hardly compresses
  known.pieces.emplace_back();
  EXPECT_TRUE(choose_fetching(*data.array, 0, steps(2, 1), 4, &known).in_pieces)
      << "10000 of 11000";
  known.stored_size = 1000;
  EXPECT_FALSE(choose_fetching(*data.array, 0, steps(2, 1), 2, &known).in_pieces) << "2300 of 2000";
}

TEST(ChunkCosts, NoPiecesOfAStoreThatDoesNotSayHowFastItIs) {
  const Data data(kBlosc), whole(R"({"id": "zstd", "level": 1})"), plain("null");
  EXPECT_FALSE(choose_fetching(*whole.array, 0, steps(2, 1), 1, nullptr).in_pieces);
  EXPECT_FALSE(choose_fetching(*plain.array, 0, steps(2, 1), 1, nullptr).in_pieces)
      << "a range of it is its part";
  data.store->says = std::nullopt;
  EXPECT_FALSE(choose_fetching(*data.array, 0, steps(2, 1), 1, nullptr).in_pieces);
}

TEST(ChunkCosts, StoredBytesAreThoseOfTheLargestChunkThatCame) {
  const Data data(kBlosc), plain("null");
  EXPECT_EQ(stored_bytes(*plain.array, steps(2, 3), false), 1200u);
  EXPECT_EQ(stored_bytes(*data.array, steps(2, 3), false), 4000u) << "nothing is known";
  EXPECT_EQ(stored_bytes(*data.array, steps(2, 3), true), 1200u);
  for (const std::uint64_t size : {1000, 1500, 500}) {
    data.store->stored = size;
    data.array->fetch({1, 0}, kWhole);
  }
  EXPECT_EQ(stored_bytes(*data.array, steps(2, 3), false), 1500u);
  EXPECT_EQ(stored_bytes(*data.array, steps(2, 3), true), 450u);
}

}  // namespace chunk_costs_test
}  // namespace batchfs
