#include "engine/pipeline/chunks/chunk_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/chunks/chunk_costs.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace chunk_decoder_test {

using testing::ElementsAre;

constexpr std::int64_t kSteps = 2, kWidth = 3;  // a chunk c is {1000 c + 0, 1, 2}, {3, 4, 5}
constexpr std::uint64_t kBytes = kSteps * kWidth * 4;
const Box kWhole{{0, 0}, {kSteps, kWidth}}, kSecondStep{{1, 0}, {1, kWidth}},
    kLastColumn{{0, 2}, {kSteps, 1}};

struct Decoding {
  explicit Decoding(const std::string& filters = "null") : data(4, kSteps, kWidth, filters) {
    array = data.view(R"({"window": {"time": 1}, "batch": 1})")->variables()[0]->array;
  }

  FakeData data;
  std::shared_ptr<const Array> array;
  Budget budget{10 * kBytes};
  Counters counters;
  ChunkCache cache{counters};
  Trace trace;
  ChunkDecoder decoder{budget, cache, counters, trace};
};

/// Wants boxes of one chunk, one after the other.
struct Wanted {
  Wanted(const Decoding& d, std::int64_t chunk, const std::vector<Box>& boxes,
         bool shares_memory = false) {
    std::int64_t elements = 0;
    for (const Box& box : boxes) elements += box.elements();
    values = std::make_shared<std::vector<std::int32_t>>(static_cast<std::size_t>(elements), -1);
    assembly->memory = values;
    assembly->shares_memory = shares_memory;
    auto* at = reinterpret_cast<std::byte*>(values->data());
    for (const Box& box : boxes) {
      assembly->parts.push_back({box, at, c_strides(box.shape, 4), nullptr});
      at += box.elements() * 4;
    }
    assembly->uses.push_back({d.array, chunk, 0, static_cast<std::uint32_t>(boxes.size())});
  }
  ChunkConsumer consumer() const {
    const Assembly::Use& use = assembly->uses.front();
    return {assembly, &use, needed(*assembly, use)};
  }

  std::shared_ptr<Assembly> assembly = std::make_shared<Assembly>();
  std::shared_ptr<std::vector<std::int32_t>> values;
};

TEST(ChunkDecoder, WhatDoesNotExistIsToldFromWhatIsFillValue) {
  Decoding d;
  d.data.store->missing = 3;
  for (const bool shares_memory : {false, true}) {
    const Wanted one(d, 3, {kWhole}, shares_memory), other(d, 3, {kSecondStep}, shares_memory);
    const auto result = d.decoder.decode(*d.array, 3, kWhole,
                                         std::vector{one.consumer(), other.consumer()}, nullptr);
    ASSERT_TRUE(result.chunk);
    EXPECT_TRUE(result.chunk->object_missing);
  }
}

TEST(ChunkDecoder, AShardThatAppearsInBetweenFailsItsBatchOnce) {
  const Decoding d;
  const Wanted batch(d, 3, {kWhole});
  std::vector<std::string> mixed;
  std::exception_ptr failed;
  batch.assembly->mixed = [&](const Error& error) { mixed.push_back(error.what()); };
  batch.assembly->finished = [&](std::exception_ptr error) { failed = error; };
  batch.assembly->begin();
  batch.assembly->observe(*d.array, 0, true);
  batch.assembly->observe(*d.array, 0, true);
  batch.assembly->observe(*d.array, 1, false);
  EXPECT_TRUE(mixed.empty());
  batch.assembly->observe(*d.array, 0, false);
  batch.assembly->observe(*d.array, 1, true);
  EXPECT_EQ(mixed.size(), 1u);
  batch.assembly->complete(nullptr);
  ASSERT_TRUE(failed);
  EXPECT_EQ(error_of(failed).code(), ErrorCode::stale);
}

TEST(ChunkDecoder, OneWhoWantsItAllGetsItInItsOwnMemory) {
  Decoding d;
  const Wanted reader(d, 3, {kWhole});
  const auto result =
      d.decoder.decode(*d.array, 3, kWhole, std::vector{reader.consumer()}, nullptr);
  EXPECT_THAT(*reader.values, ElementsAre(3000, 3001, 3002, 3003, 3004, 3005));
  EXPECT_FALSE(result.chunk);  // a reader's own memory is not shared
  EXPECT_EQ(d.budget.used(), 0u);
  EXPECT_EQ(d.counters.chunks_decoded.load(), 1u);
}

TEST(ChunkDecoder, WhatLiesInABatchIsFoundThereByOthers) {
  Decoding d;
  const Wanted batch(d, 1, {kWhole}, true), part(d, 1, {kLastColumn});
  const auto result = d.decoder.decode(*d.array, 1, kWhole,
                                       std::vector{part.consumer(), batch.consumer()}, nullptr);
  EXPECT_THAT(*batch.values, ElementsAre(1000, 1001, 1002, 1003, 1004, 1005));
  EXPECT_THAT(*part.values, ElementsAre(1002, 1005));
  ASSERT_TRUE(result.chunk);
  EXPECT_EQ(result.cache_bytes, 0u);
  EXPECT_EQ(static_cast<const void*>(result.chunk->data), batch.values->data());
  EXPECT_EQ(result.chunk->memory, std::shared_ptr<const void>(batch.values));
  EXPECT_EQ(d.counters.chunks_decoded.load(), 1u);
}

TEST(ChunkDecoder, AChunkThatIsUsedAgainIsKeptBesideTheBatchWhereThereIsRoom) {
  Decoding d(kWholeChunks);
  const auto decode = [&d](const Wanted& batch) {
    const auto result =
        d.decoder.decode(*d.array, 1, kWhole, std::vector{batch.consumer()}, nullptr);
    EXPECT_THAT(*batch.values, ElementsAre(1000, 1001, 1002, 1003, 1004, 1005));
    return result;
  };
  const Wanted batch(d, 1, {kWhole}, true);
  EXPECT_EQ(decode(batch).cache_bytes, 0u) << "nobody uses it again";
  batch.assembly->keeps_chunks = true;
  {
    const auto kept = decode(batch);
    EXPECT_EQ(kept.cache_bytes, kBytes);
    ASSERT_TRUE(kept.chunk);
    EXPECT_NE(static_cast<const void*>(kept.chunk->data), batch.values->data());
  }
  const Budget::Reservation others = d.budget.try_reserve(9 * kBytes + 1);
  EXPECT_EQ(decode(batch).cache_bytes, 0u) << "there is no room";
}

TEST(ChunkDecoder, WhileUsesAreLookedForAChunkOfWhichABatchTakesAPartIsKept) {
  Decoding d(kWholeChunks);
  const auto kept = [&d](const Box& box) {
    const Wanted batch(d, 1, {box}, true);
    return d.decoder.decode(*d.array, 1, kWhole, std::vector{batch.consumer()}, nullptr)
               .cache_bytes > 0;
  };
  d.cache.set_looking(true);
  EXPECT_FALSE(kept(kWhole)) << "nothing is left for others";
  const Budget::Reservation others = d.budget.try_reserve(8 * kBytes);
  EXPECT_TRUE(kept(kLastColumn));
  d.cache.set_looking(false);
  EXPECT_FALSE(d.cache.is_looking());
}

TEST(ChunkDecoder, AChunkIsKeptInPlaceOfThoseThatAreUsedLater) {
  Decoding d;
  d.data.store->asynchronous = true;  // remote: uncompressed chunks are worth keeping, too
  const auto decode = [&d](std::int64_t chunk) {
    const Wanted batch(d, chunk, {kWhole}, true);
    auto result = d.decoder.decode(*d.array, chunk, kWhole, std::vector{batch.consumer()}, nullptr);
    if (result.cache_bytes > 0)
      d.cache.insert({d.array.get(), chunk}, d.array, *result.chunk, result.cache_bytes);
    return result.cache_bytes > 0;
  };
  const Budget::Reservation others = d.budget.try_reserve(8 * kBytes);  // room for two
  d.cache.add_use({d.array.get(), 0}, 7);
  d.cache.add_use({d.array.get(), 1}, 5);
  d.cache.add_use({d.array.get(), 2}, 9);
  d.cache.add_use({d.array.get(), 3}, 6);
  EXPECT_TRUE(decode(0));
  EXPECT_TRUE(decode(1));
  EXPECT_FALSE(decode(2)) << "the others are used sooner";
  EXPECT_TRUE(decode(3)) << "chunk 0 goes, which is used later";
  EXPECT_FALSE(d.cache.holds({d.array.get(), 0}, kWhole));
  EXPECT_TRUE(d.cache.holds({d.array.get(), 1}, kWhole));
}

TEST(ChunkDecoder, BatchesThatAreOnlyKeptGoBeforeChunksThatAreUsedAgain) {
  Decoding d(kWholeChunks);
  Budget budget(3 * kBytes);
  std::vector<Budget::Reservation> batches;
  for (int i = 0; i < 2; ++i) batches.push_back(budget.reserve(kBytes));
  ChunkDecoder decoder(budget, d.cache, d.counters, d.trace, [&batches] {
    if (batches.empty()) return false;
    batches.pop_back();
    return true;
  });
  const auto decode = [&](std::int64_t chunk) {
    const Wanted reader(d, chunk, {kSecondStep});
    const auto result =
        decoder.decode(*d.array, chunk, kWhole, std::vector{reader.consumer()}, nullptr);
    if (result.chunk)
      d.cache.insert({d.array.get(), chunk}, d.array, *result.chunk, result.cache_bytes);
  };
  for (std::int64_t chunk = 0; chunk < 3; ++chunk) d.cache.add_use({d.array.get(), chunk}, 10);
  decode(0);
  decode(1);
  EXPECT_EQ(batches.size(), 0u) << "a chunk that is read takes memory until it is decoded";
  EXPECT_TRUE(d.cache.holds({d.array.get(), 0}, kWhole));
  EXPECT_TRUE(d.cache.holds({d.array.get(), 1}, kWhole));
}

TEST(ChunkDecoder, AChunkThatIsFarLargerThanTheBudgetIsRefused) {
  Decoding d(kWholeChunks);
  d.decoder.check_size(32 << 20);
  try {
    d.decoder.check_size(33 << 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_NE(error.why().find("--memory"), std::string::npos) << error.why();
  }
  Budget large(40 << 20);
  ChunkDecoder(large, d.cache, d.counters, d.trace).check_size(33 << 20);
}

TEST(ChunkDecoder, OneWindowInTwoTensorsIsDecodedOnceAndCopied) {
  Decoding d;
  const Wanted reader(d, 2, {kSecondStep, kSecondStep});
  d.decoder.decode(*d.array, 2, kSecondStep, std::vector{reader.consumer()}, nullptr);
  EXPECT_THAT(*reader.values, ElementsAre(2003, 2004, 2005, 2003, 2004, 2005));
  EXPECT_EQ(d.counters.chunks_decoded.load(), 1u);
}

TEST(ChunkDecoder, SeveralWithPartsShareADecodedChunkThatIsCounted) {
  Decoding d(kWholeChunks);
  const Wanted one(d, 0, {kSecondStep}), other(d, 0, {kLastColumn, kSecondStep});
  {
    const auto result = d.decoder.decode(*d.array, 0, kWhole,
                                         std::vector{one.consumer(), other.consumer()}, nullptr);
    EXPECT_THAT(*one.values, ElementsAre(3, 4, 5));
    EXPECT_THAT(*other.values, ElementsAre(2, 5, 3, 4, 5));
    ASSERT_TRUE(result.chunk);
    EXPECT_EQ(result.cache_bytes, kBytes);
    EXPECT_EQ(d.budget.used(), kBytes);
  }
  EXPECT_EQ(d.budget.used(), 0u);
}

TEST(ChunkDecoder, OthersGetWhatIsDecodedOfTheirParts) {
  Decoding d(kWholeChunks);
  const Wanted one(d, 1, {kSecondStep}), all(d, 1, {kWhole}), column(d, 1, {kLastColumn}),
      first(d, 1, {{{0, 0}, {1, kWidth}}}), inside(d, 1, {{{1, 1}, {1, 1}}});
  std::vector others{all.consumer(), column.consumer(), first.consumer(), inside.consumer()};
  const auto result =
      d.decoder.decode(*d.array, 1, kSecondStep, std::vector{one.consumer()}, nullptr, others);
  EXPECT_FALSE(result.keep);
  EXPECT_THAT(*one.values, ElementsAre(1003, 1004, 1005));
  EXPECT_THAT(*all.values, ElementsAre(-1, -1, -1, 1003, 1004, 1005));
  EXPECT_THAT(*column.values, ElementsAre(-1, 1005));
  EXPECT_EQ(others[0].missing, (Box{{0, 0}, {1, kWidth}}));
  EXPECT_EQ(others[1].missing, (Box{{0, 2}, {1, 1}}));
  EXPECT_EQ(others[2].missing, first.consumer().missing);
  EXPECT_THAT(*inside.values, ElementsAre(1004));
  EXPECT_TRUE(others[3].missing.empty());
  others.pop_back();
  d.decoder.decode(*d.array, 1, others[0].missing, others, nullptr);
  EXPECT_THAT(*all.values, ElementsAre(1000, 1001, 1002, 1003, 1004, 1005));
  EXPECT_THAT(*column.values, ElementsAre(1002, 1005));
}

// The halo of a window repeats parts of it, once all of these are complete.
TEST(ChunkDecoder, WhatIsRepeatedIsRepeatedAtTheEnd) {
  Decoding d(kWholeChunks);
  const Wanted one(d, 1, {kSecondStep}), all(d, 1, {kWhole, kWhole});
  Assembly::Part& part = all.assembly->parts[0];
  all.assembly->repeats.push_back({{2}, {static_cast<std::int64_t>(kBytes)}});
  all.assembly->uses[0].part_count = 1;
  part.repeat = &all.assembly->repeats[0];
  std::vector others{all.consumer()};
  d.decoder.decode(*d.array, 1, kSecondStep, std::vector{one.consumer()}, nullptr, others);
  d.decoder.decode(*d.array, 1, others[0].missing, others, nullptr);
  EXPECT_THAT(*all.values,
              ElementsAre(1000, 1001, 1002, 1003, 1004, 1005, 1000, 1001, 1002, 1003, 1004, 1005));
}

TEST(ChunkDecoder, WhatWasFetchedIsDecodedWithoutTheStore) {
  std::atomic<bool> there{false};  // declared before the object that joins the store's threads
  Decoding d(kWholeChunks);
  const Wanted reader(d, 2, {kWhole});
  KeptChunk stored;
  d.data.store->asynchronous = true;
  d.array->fetch(d.array->grid().chunk(2), kWhole,
                 [&](std::variant<EncodedChunk, std::exception_ptr> came) {
                   stored.encoded = std::get<EncodedChunk>(std::move(came));
                   there = true;
                   there.notify_all();
                 });
  there.wait(false);
  const int reads = d.data.store->reads.load();
  d.decoder.decode(*d.array, 2, kWhole, std::vector{reader.consumer()}, &stored);
  EXPECT_THAT(*reader.values, ElementsAre(2000, 2001, 2002, 2003, 2004, 2005));
  EXPECT_EQ(d.data.store->reads.load(), reads);
}

TEST(ChunkDecoder, ErrorsOfTheStoreLeaveNoMemoryCounted) {
  Decoding d(kWholeChunks);
  const Wanted one(d, 1, {kSecondStep}), other(d, 1, {kLastColumn});
  d.data.store->failing = 1;
  try {
    d.decoder.decode(*d.array, 1, kWhole, std::vector{one.consumer(), other.consumer()}, nullptr);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
  EXPECT_EQ(d.budget.used(), 0u);
}

TEST(ChunkDecoder, MemoryIsWhatWasReservedAheadThenWhatIsFreeThenWhatTheCacheGivesUp) {
  Decoding d;
  const Wanted reader(d, 0, {kWhole});
  reader.assembly->give_ahead(d.budget.reserve(4));
  const std::vector consumers{reader.consumer()};
  EXPECT_EQ(d.decoder.find_memory(10, consumers).bytes(), 10u);  // 4 of them those reserved
  EXPECT_EQ(d.budget.used(), 0u);

  auto kept = std::make_shared<Budget::Reservation>(d.budget.reserve(6 * kBytes));
  const auto others = d.budget.reserve(4 * kBytes);
  d.cache.insert({d.array.get(), 0}, d.array,
                 {kWhole, nullptr, c_strides(kWhole.shape, 4), std::move(kept)}, 6 * kBytes);
  {
    const auto memory = d.decoder.find_memory(5 * kBytes, consumers);
    EXPECT_EQ(memory.bytes(), 5 * kBytes);
    EXPECT_EQ(d.cache.bytes(), 0u);
    EXPECT_EQ(d.decoder.find_memory(2 * kBytes, consumers).bytes(), 0u);  // there is no more
  }
  Budget::Reservation memory;
  d.decoder.adjust(memory, 8 * kBytes, consumers);  // beyond the budget
  EXPECT_EQ(d.budget.used(), 12 * kBytes);
  d.decoder.adjust(memory, kBytes, consumers);
  EXPECT_EQ(d.budget.used(), 5 * kBytes);
}

}  // namespace chunk_decoder_test
}  // namespace batchfs
