#include "tools/service/generations/generation.h"

#include <gtest/gtest.h>

#include "fs/formats/formats.h"
#include "tests/unit/tools/service/generations/growing_store.h"

namespace batchfs {
namespace generation_test {

TEST(Generation, HasTheViewsAndTheDataset) {
  const GrowingStore store;
  Log log;
  const auto read = read_generation(store.options(), log);
  ASSERT_EQ(read->views.size(), 1u);
  EXPECT_EQ(read->views[0]->batches(), 2);
  EXPECT_EQ(read->dataset->dim_size("time"), 4);
  EXPECT_GE(std::time(nullptr), read->time);
}

TEST(Generation, ItsIdentityChangesWithTheStore) {
  GrowingStore store;
  Log log;
  const auto first = read_generation(store.options(), log);
  EXPECT_EQ(first->identity(), read_generation(store.options(), log)->identity());
  store.grow_to(6);
  const auto second = read_generation(store.options(), log);
  EXPECT_NE(first->identity(), second->identity());
  EXPECT_NE(first->snapshot().at("id"), second->snapshot().at("id"));
}

TEST(Generation, TheReadingSaysWhenAndTheSnapshotDoesNot) {
  const GrowingStore store;
  Log log;
  const auto read = read_generation(store.options(), log),
             later = read_generation(store.options(), log);
  read->time = 1'000'000'000;
  EXPECT_EQ(read->reading().at("read"), "2001-09-09T01:46:40Z");
  EXPECT_EQ(read->reading().at("id"), read->snapshot().at("id"));
  EXPECT_NE(read->reading(), later->reading());
  EXPECT_EQ(read->snapshot(), later->snapshot());
}

TEST(Generation, TheEngineForgetsIt) {
  const GrowingStore store;
  Log log;
  Engine engine({.threads = 2, .memory = 64 << 20}, log);
  auto read = read_generation(store.options(), log);
  const std::weak_ptr<Store> watched = read->opened.store;
  read->resolve(store.options(), engine, log);
  engine.open({.view = read->views[0], .format = &npy_format(), .batch = 0});
  engine.open({.view = read->views[0], .format = &npy_format(), .batch = 1});
  EXPECT_FALSE(engine.state().streams.empty());
  read = nullptr;
  EXPECT_TRUE(engine.state().streams.empty());
  engine.stop();  // ends the work in flight
  EXPECT_TRUE(watched.expired());
}

TEST(Generation, SomeVersionsNeverChange) {
  EXPECT_EQ(fixed_version({}), "");
  StoreOptions options;
  options.config.icechunk.branch = "main";
  EXPECT_EQ(fixed_version(options), "");
  EXPECT_NO_THROW(check_refresh(options, 60));
  options.config.icechunk.as_of = 0;
  EXPECT_EQ(fixed_version(options), "--as-of");
  EXPECT_THROW(check_refresh(options, 60), Error);
  EXPECT_NO_THROW(check_refresh(options, 0));
  options = {};
  options.config.icechunk.tag = "v1";
  EXPECT_EQ(fixed_version(options), "tag v1");
  options.others.push_back({"rain", "/data/rain.zarr"});
  EXPECT_EQ(fixed_version(options), "") << "the other store may change";
}

}  // namespace generation_test
}  // namespace batchfs
