#include "engine/store/virtual/index_cache.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

// icechunk/manifest_cache_test.cc tests the rest with manifests.
namespace batchfs {
namespace index_cache_test {

using testing::HasSubstr;

IndexCache cache_of(const std::shared_ptr<MemoryStore>& store, std::uint64_t memory) {
  return IndexCache(store, {100, memory}, "page",
                    [](const std::string&, const std::optional<Buffer>& file) -> DecodedIndex {
                      if (!file) return {std::make_shared<std::string>("none"), 4};
                      if (file->size() == 3) throw Error(ErrorCode::corrupt, "three bytes");
                      const std::string text(reinterpret_cast<const char*>(file->data()),
                                             file->size());
                      return {std::make_shared<std::string>(text), text.size()};
                    });
}

std::string get(IndexCache& cache, const std::string& key) {
  std::promise<IndexCache::Outcome> result;
  cache.get(key, 10, [&result](IndexCache::Outcome o) { result.set_value(std::move(o)); });
  const IndexCache::Outcome outcome = result.get_future().get();
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) return error_of(*error).what();
  return *std::static_pointer_cast<const std::string>(
      std::get<std::shared_ptr<const void>>(outcome));
}

TEST(IndexCache, DecodesOnceAndKeepsWhatFits) {
  for (const bool local : {true, false}) {
    const auto store = std::make_shared<MemoryStore>();
    store->local = local;
    store->set("a", "aaaaaaaa");
    store->set("b", "bbbbbbbb");
    IndexCache cache = cache_of(store, 15);
    EXPECT_EQ(get(cache, "a"), "aaaaaaaa");
    EXPECT_EQ(get(cache, "a"), "aaaaaaaa");
    EXPECT_EQ(store->asked["a"], 1);
    EXPECT_EQ(get(cache, "none"), "none");
    EXPECT_EQ(get(cache, "b"), "bbbbbbbb");
    const auto counters = cache.counters();
    EXPECT_EQ(counters[0].name, "pages_loaded");
    EXPECT_EQ(counters[0].value, 3u);
    EXPECT_EQ(counters[1].value, 1u);  // "a"
    EXPECT_EQ(counters[2].value, 12u);
  }
}

TEST(IndexCache, ErrorsAreNotKept) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("a", "abc");
  IndexCache cache = cache_of(store, 15);
  EXPECT_THAT(get(cache, "a"), HasSubstr("three bytes (memory/a)"));
  store->set("a", "abcd");
  EXPECT_EQ(get(cache, "a"), "abcd");
  store->set("long", std::string(101, 'x'));
  EXPECT_THAT(get(cache, "long"), HasSubstr("--memory"));
}

/// A remote store whose reads wait until it is stopped.
class HangingStore final : public MemoryStore {
 public:
  HangingStore() { local = false; }
  void read_async(const std::string&, ByteRange, ReadDone done) override {
    waiting_.push_back(std::move(done));
  }
  void stop() override {
    // Like the stores of cloud services: another thread ends the reads.
    ending_ = std::thread([waiting = std::exchange(waiting_, {})] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (const ReadDone& done : waiting)
        done(std::make_exception_ptr(Error(ErrorCode::interrupted, "stopped")));
    });
  }
  ~HangingStore() override { ending_.join(); }

 private:
  std::vector<ReadDone> waiting_;
  std::thread ending_;
};

TEST(IndexCache, WhatIsUnderWayAtItsEndEndsBefore) {
  const auto store = std::make_shared<HangingStore>();
  std::atomic<int> ended{0};
  {
    IndexCache cache = cache_of(store, 15);
    for (const char* key : {"a", "b"})
      cache.get(key, 10, [&ended](const IndexCache::Outcome& outcome) {
        EXPECT_TRUE(std::holds_alternative<std::exception_ptr>(outcome));
        ++ended;
      });
  }
  EXPECT_EQ(ended, 2);
}

}  // namespace index_cache_test
}  // namespace batchfs
