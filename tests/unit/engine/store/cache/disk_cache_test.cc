#include "engine/store/cache/disk_cache.h"

#include "engine/base/awaited.h"
#include "tests/unit/engine/store/cache/cached_origin.h"

namespace batchfs {
namespace disk_cache_test {

using namespace cached_origin;
using DiskCache = CachedOrigin;

TEST_F(DiskCache, ASecondMountAsksOnceAndIsSentNothing) {
  fill();
  EXPECT_EQ(origin->requests, 11);
  EXPECT_EQ(origin->sent, 50002);
  const auto store = mount();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read(*store, "zarr.json"), "{}");
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(read(*store, "t/c/" + std::to_string(i)), content(i, 5000));
    EXPECT_EQ(origin->requests, 11);
    EXPECT_EQ(origin->sent, 0);
  }
  EXPECT_EQ(counter(*store, "disk_cache_confirmed"), 11);
  EXPECT_EQ(counter(*store, "disk_cache_hits"), 11);
  EXPECT_EQ(counter(*store, "disk_cache_misses"), 0);
  EXPECT_EQ(counter(*store, "requests"), 11);
  EXPECT_EQ(store->url(), "memory://origin");
  EXPECT_FALSE(store->is_local());
}

TEST_F(DiskCache, MetadataNeedsOneRoundTrip) {
  fill();
  const auto store = mount();
  EXPECT_EQ(store->size("zarr.json"), 2);
  EXPECT_EQ(read(*store, "zarr.json"), "{}");
  EXPECT_EQ(origin->requests, 1);
  EXPECT_EQ(store->size("t/c/0"), 5000);
  EXPECT_EQ(origin->requests, 2);
  read(*store, "t/c/1");
  EXPECT_EQ(origin->requests, 3);
}

TEST_F(DiskCache, AnObjectThatAppearsWhileItIsAskedForIsNotStale) {
  const auto store = mount();
  origin->before_missing = [&] {
    origin->set("new", "0123456789", "n1");
    EXPECT_EQ(read(*store, "new"), "0123456789");
  };
  EXPECT_EQ(read(*store, "new", {0, 4}), "0123");
}

// Never missing, which would become fill values: this mount has seen the object.
TEST_F(DiskCache, AnObjectThatAppearsAndGoesWhileItIsAskedForIsTakenFromTheCache) {
  options.wait_for_disk = true;  // cached before it is answered
  EXPECT_EQ(appear_and_go(*mount()), "0123");
}

TEST_F(DiskCache, AnObjectThatAppearsAndGoesWhileItIsAskedForIsStaleWhereItWasNotKept) {
  options.queue = 0;  // nothing is cached
  EXPECT_EQ(error_of([&] { appear_and_go(*mount()); }), ErrorCode::stale);
}

TEST_F(DiskCache, RangesAreKept) {
  const std::string all = content(3, 5000);
  const auto check = [&](Store& store) {
    EXPECT_EQ(read(store, "t/c/3", {100, 200}), all.substr(100, 200));
    EXPECT_EQ(read(store, "t/c/3", {4900, 200}), all.substr(4900));
    EXPECT_EQ(read(store, "t/c/3", {9000, 10}), "");
    EXPECT_EQ(read(store, "t/c/3", {0, 16, true}), all.substr(4984));
    std::string out(50, ' ');
    const auto part = store.read_into("t/c/3", 4970, std::as_writable_bytes(std::span(out)));
    ASSERT_TRUE(part);
    EXPECT_EQ(part->bytes, 30);
    EXPECT_EQ(part->object_size, 5000);
    EXPECT_EQ(out, all.substr(4970) + std::string(20, ' '));
  };
  check(*mount());
  EXPECT_EQ(origin->requests, 5);
  const auto store = mount();
  check(*store);
  EXPECT_EQ(origin->requests, 1);
  EXPECT_EQ(origin->sent, 0);
  read(*store, "t/c/4");
}

TEST_F(DiskCache, ARangeOfAKeptObjectIsTakenFromIt) {
  fill();
  const auto store = mount();
  const std::string all = content(3, 5000);
  EXPECT_EQ(read(*store, "t/c/3", {100, 200}), all.substr(100, 200));
  EXPECT_EQ(read(*store, "t/c/3", {0, 16, true}), all.substr(4984));
  EXPECT_EQ(read(*store, "t/c/3", {4990, UINT64_MAX}), all.substr(4990));
  EXPECT_EQ(read(*store, "t/c/3", {7000, 1}), "");
  EXPECT_EQ(origin->requests, 1);
  EXPECT_EQ(origin->sent, 0);
}

TEST_F(DiskCache, AnObjectThatChangedBetweenMountsIsReadAnew) {
  fill();
  origin->set("t/c/3", content(33, 6000), "new");
  origin->set("zarr.json", "[]", "m2");
  {
    const auto store = mount();
    EXPECT_EQ(read(*store, "zarr.json"), "[]");
    EXPECT_EQ(read(*store, "t/c/3", {10, 20}), content(33, 6000).substr(10, 20));
    EXPECT_EQ(read(*store, "t/c/3"), content(33, 6000));
    EXPECT_EQ(read(*store, "t/c/3", {10, 21}), content(33, 6000).substr(10, 21));
  }
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/3"), content(33, 6000));
  EXPECT_EQ(read(*store, "zarr.json"), "[]");
  EXPECT_EQ(origin->sent, 0);
}

TEST_F(DiskCache, AnObjectThatChangesDuringTheMountIsStale) {
  const auto store = mount();
  read(*store, "t/c/3", {0, 10});
  origin->set("t/c/3", content(33, 6000), "new");
  EXPECT_EQ(error_of([&] { read(*store, "t/c/3", {10, 10}); }), ErrorCode::stale);
  read(*store, "t/c/4", {0, 10});
  origin->remove("t/c/4");
  EXPECT_EQ(error_of([&] { read(*store, "t/c/4", {10, 10}); }), ErrorCode::stale);
}

TEST_F(DiskCache, MissingIsNeverKept) {
  {
    const auto store = mount();
    EXPECT_EQ(read(*store, "t/c/77"), std::nullopt);
    origin->set("t/c/77", "here now", "v");
    EXPECT_EQ(read(*store, "t/c/77"), "here now");
  }
  origin->remove("t/c/77");
  EXPECT_EQ(read(*mount(), "t/c/77"), std::nullopt);
  EXPECT_EQ(mount()->size("zarr.jsonx/zarr.json"), std::nullopt);
}

TEST_F(DiskCache, WhatHasNoVersionIsNotKept) {
  origin->set("t/c/0", "bytes", "");
  EXPECT_EQ(read(*mount(), "t/c/0"), "bytes");
  EXPECT_EQ(read(*mount(), "t/c/0"), "bytes");
  EXPECT_EQ(origin->sent, 5);
}

TEST_F(DiskCache, TrustAsksAboutMetadataOnly) {
  fill();
  options.trust = true;
  const auto store = mount();
  EXPECT_EQ(read(*store, "zarr.json"), "{}");
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(origin->requests, 1);
}

TEST_F(DiskCache, TrustAsksAboutSetsAndBranches) {
  options.trust = true;
  for (const char* key : {"set.json", "repo", "refs/branch.main/ref.json"}) {
    origin->set(key, "old", "1");
    EXPECT_EQ(read(*mount(), key), "old");
    origin->set(key, "new", "2");
    EXPECT_EQ(read(*mount(), key), "new") << key;
  }
}

TEST_F(DiskCache, WhatIsTrustedHasOneVersion) {
  fill();
  options.trust = true;
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5", {0, 10}), content(5, 5000).substr(0, 10));
  origin->set("t/c/5", content(55, 5000), "new");
  std::filesystem::remove_all(directory / "c");  // evicted
  EXPECT_EQ(error_of([&] { read(*store, "t/c/5", {10, 10}); }), ErrorCode::stale);
}

TEST_F(DiskCache, WhatIsGoneFromTheServerIsServedAsLongAsItIsKept) {
  fill();
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  origin->remove("t/c/5");
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  std::filesystem::remove_all(directory / "c");
  EXPECT_EQ(error_of([&] { read(*store, "t/c/5"); }), ErrorCode::stale);
}

TEST_F(DiskCache, WhatCannotBeWhatWasStoredIsReplaced) {
  // A cache between the origin and this one returned a truncated object, with the object's version.
  const std::string whole = content(5, 5000);
  origin->set("t/c/5", whole.substr(0, 100), "c5");
  options.wait_for_disk = true;
  {
    const auto store = mount();
    EXPECT_EQ(read(*store, "t/c/5"), whole.substr(0, 100));
    origin->set("t/c/5", whole, "c5");
    EXPECT_EQ(read(*store, "t/c/5"), whole.substr(0, 100)) << "it is kept";
    const auto again = awaited<ReadOutcome>(
        [&](ReadDone done) { read_past_caches(*store, "t/c/5", {}, std::move(done)); });
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(again->data()), again->size()), whole);
  }
  EXPECT_EQ(read(*mount(), "t/c/5"), whole);
}

TEST_F(DiskCache, StoresAreToldApart) {
  fill();
  options.realm = "https://another.endpoint";
  const auto store = mount();
  read(*store, "t/c/5");
  EXPECT_EQ(origin->sent, 5000);
}

TEST_F(DiskCache, FailuresAreFailures) {
  fill();
  const auto store = mount();
  read(*store, "t/c/5");
  origin->fail = true;
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(error_of([&] { read(*store, "t/c/6"); }), ErrorCode::io);
  EXPECT_EQ(error_of([&] { read(*store, "../x"); }), ErrorCode::invalid_argument);
  origin->fail = false;
  EXPECT_EQ(read(*store, "t/c/6"), content(6, 5000));
}

TEST_F(DiskCache, WhatItHoldsIsKnownWithoutReadingIt) {
  fill();
  const auto store = mount();
  EXPECT_EQ(is_on_disk(*store, "t/c/3", {}), true);
  EXPECT_EQ(is_on_disk(*store, "t/c/3", {10, 20}), true) << "a part of a kept object";
  EXPECT_EQ(is_on_disk(*store, "t/c/10", {}), false);
  EXPECT_EQ(is_on_disk(*origin, "t/c/3", {}), std::nullopt);
  EXPECT_EQ(origin->requests, 0);
}

}  // namespace disk_cache_test
}  // namespace batchfs
