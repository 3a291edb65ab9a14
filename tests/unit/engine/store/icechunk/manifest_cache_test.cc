#include "engine/store/icechunk/manifest_cache.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace manifest_cache_test {

using icechunk::base32;
using icechunk::Manifest;
using icechunk::ManifestCache;
using testing::HasSubstr;

std::shared_ptr<MemoryStore> store_of(const std::string& ids) {
  const auto store = std::make_shared<MemoryStore>();
  for (const char id : ids)
    store->set("manifests/" + base32(object_id(id)),
               manifest_file(id, {array_refs('a', {inline_ref({0}, std::string(1000, id))})}));
  return store;
}

std::shared_ptr<const icechunk::Snapshot> snapshot() {
  return icechunk::Snapshot::parse(bytes_of(snapshot_file('s', {})), object_id('s'), 1 << 20);
}

std::shared_ptr<const Manifest> get(ManifestCache& cache, char id) {
  std::promise<ManifestCache::Outcome> result;
  cache.get(object_id(id),
            [&result](ManifestCache::Outcome outcome) { result.set_value(std::move(outcome)); });
  ManifestCache::Outcome outcome = result.get_future().get();
  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  return std::get<std::shared_ptr<const Manifest>>(outcome);
}

std::uint64_t counter(const ManifestCache& cache, const std::string& name) {
  for (const Store::Counter& one : cache.counters())
    if (one.name == name) return one.value;
  return UINT64_MAX;
}

TEST(ManifestCache, ReadsAManifestOnce) {
  for (const bool local : {true, false}) {
    const auto store = store_of("mn");
    store->local = local;
    ManifestCache cache(store, snapshot(), {1 << 20, 1 << 20});
    const auto first = get(cache, 'm');
    EXPECT_EQ(get(cache, 'm'), first);
    EXPECT_NE(get(cache, 'n'), first);
    EXPECT_EQ(store->asked["manifests/" + base32(object_id('m'))], 1);
    EXPECT_EQ(counter(cache, "manifests_loaded"), 2u);
  }
}

TEST(ManifestCache, GivesUpTheLeastRecentlyUsed) {
  const auto store = store_of("mnop");
  ManifestCache cache(store, snapshot(), {1 << 20, 2500});
  get(cache, 'm');
  get(cache, 'n');
  get(cache, 'm');
  get(cache, 'o');
  EXPECT_EQ(counter(cache, "manifests_evicted"), 1u);
  EXPECT_LE(counter(cache, "manifest_memory"), 2500u);
  get(cache, 'm');
  EXPECT_EQ(store->asked["manifests/" + base32(object_id('m'))], 1);
  get(cache, 'n');
  EXPECT_EQ(store->asked["manifests/" + base32(object_id('n'))], 2);
}

std::string refusal(ManifestCache& cache, char id) {
  try {
    get(cache, id);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ManifestCache, AMissingOneIsAnErrorThatIsNotKept) {
  const auto store = store_of("m");
  ManifestCache cache(store, snapshot(), {1 << 20, 1 << 20});
  EXPECT_THAT(refusal(cache, 'x'), HasSubstr("garbage collection"));
  store->objects.merge(store_of("x")->objects);
  EXPECT_EQ(refusal(cache, 'x'), "");
  ManifestCache small(store, snapshot(), {500, 1 << 20});
  EXPECT_THAT(refusal(small, 'm'), HasSubstr("--memory"));
}

}  // namespace manifest_cache_test
}  // namespace batchfs
