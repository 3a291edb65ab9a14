#include "engine/pipeline/chunks/chunk_fetcher.h"

#include <future>

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/parts.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace chunk_fetcher_test {

class ChunkFetcherTest : public testing::Test {
 protected:
  ChunkFetcherTest() { parts_.data.store->asynchronous = true; }
  std::shared_ptr<ChunkFetcher::Fetch> fetch(std::int64_t chunk, std::uint64_t reserved) {
    std::promise<std::shared_ptr<ChunkFetcher::Fetch>> arrived;
    fetcher_.fetch({.array = parts_.array,
                    .chunk = chunk,
                    .box = Box{{0, 0}, {4, 6}},
                    .memory = parts_.budget.reserve(reserved)},
                   [&](std::shared_ptr<ChunkFetcher::Fetch> fetched) {
                     arrived.set_value(std::move(fetched));
                   });
    return arrived.get_future().get();
  }

  Parts parts_;
  ChunkDecoder decoder_{parts_.budget, parts_.cache, parts_.counters, parts_.trace};
  ChunkFetcher fetcher_{decoder_, parts_.counters, parts_.trace};
};

TEST_F(ChunkFetcherTest, AChunkArrivesWithTheMemoryThatItTakes) {
  for (const std::uint64_t reserved : {10u, 1000u}) {
    const auto fetched = fetch(3, reserved);
    ASSERT_TRUE(std::holds_alternative<EncodedChunk>(fetched->outcome));
    EXPECT_EQ(fetched->chunk, 3);
    const auto kept = fetcher_.accept(*fetched);
    EXPECT_EQ(kept->encoded.held(), 96u);
    EXPECT_EQ(kept->reservation.bytes(), 96u);
    EXPECT_EQ(parts_.budget.used(), 96u);
  }
  EXPECT_EQ(parts_.counters.chunks_fetched, 2u);
  EXPECT_EQ(parts_.counters.bytes_fetched, 2u * 96);
  const auto events = parts_.trace.last(UINT64_MAX).events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, Trace::Kind::fetch);
  EXPECT_EQ(events[0].bytes, 96u);
}

TEST_F(ChunkFetcherTest, AnErrorArrivesToo) {
  parts_.data.store->failing = 3;
  const auto fetched = fetch(3, 96);
  ASSERT_TRUE(std::holds_alternative<std::exception_ptr>(fetched->outcome));
  EXPECT_EQ(error_of(std::get<std::exception_ptr>(fetched->outcome)).code(), ErrorCode::io);
  EXPECT_EQ(parts_.trace.last(UINT64_MAX).events.at(0).end, Trace::End::failed);
  EXPECT_EQ(parts_.counters.chunks_fetched, 0u);
}

TEST_F(ChunkFetcherTest, TheStoresThreadKeepsNothing) {
  std::weak_ptr<const Array> array;
  std::promise<void> arrived;
  {
    FakeData data(2, 4, 6);
    data.store->asynchronous = true;
    const auto own = data.dataset->variable("v").array;
    array = own;
    std::shared_ptr<ChunkFetcher::Fetch> kept;
    fetcher_.fetch({.array = own, .chunk = 1, .box = Box{{0, 0}, {4, 6}}},
                   [&](std::shared_ptr<ChunkFetcher::Fetch> fetched) {
                     kept = std::move(fetched);
                     arrived.set_value();
                   });
    arrived.get_future().get();
  }
  EXPECT_TRUE(array.expired());
}

}  // namespace chunk_fetcher_test
}  // namespace batchfs
