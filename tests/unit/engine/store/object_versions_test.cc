#include "engine/store/object_versions.h"

#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace object_versions_test {

std::uint64_t counter(const ObjectVersions& versions, const std::string& name) {
  for (const Store::Counter& each : versions.counters())
    if (each.name == name) return each.value;
  ADD_FAILURE() << name;
  return 0;
}

TEST(ObjectVersions, AnObjectHasTheVersionThatItHadFirst) {
  ObjectVersions versions({});
  EXPECT_FALSE(versions.contains("t/0"));
  EXPECT_TRUE(versions.accept("t/0", 5));
  EXPECT_TRUE(versions.accept("t/0", 5));
  EXPECT_FALSE(versions.accept("t/0", 6));
  EXPECT_TRUE(versions.accept("t/0", 5));
  EXPECT_EQ(versions.find("t/0"), 5u);
  EXPECT_TRUE(versions.accept("t/1", 6));
  EXPECT_EQ(versions.find("t/2"), std::nullopt);
  EXPECT_EQ(counter(versions, "object_versions"), 2u);
}

TEST(ObjectVersions, AnUnknownVersionMatchesEveryOne) {
  ObjectVersions versions({});
  EXPECT_EQ(versions.digest(""), ObjectVersions::kUnknown);
  EXPECT_NE(versions.digest("a"), ObjectVersions::kUnknown);
  EXPECT_NE(versions.digest("a"), versions.digest("b"));
  EXPECT_TRUE(versions.accept("t", ObjectVersions::kUnknown));
  EXPECT_TRUE(versions.contains("t"));
  EXPECT_EQ(versions.find("t"), std::nullopt);
  EXPECT_TRUE(versions.accept("t", 7));  // reported now
  EXPECT_EQ(versions.find("t"), 7u);
  EXPECT_TRUE(versions.accept("t", ObjectVersions::kUnknown));
  EXPECT_FALSE(versions.accept("t", 8));
}

TEST(ObjectVersions, SaysWhenThereIsNoRoom) {
  std::vector<std::string> lines;
  ObjectVersions versions(
      {.memory = 96 << 10, .warn = [&](const std::string& line) { lines.push_back(line); }});
  for (std::uint64_t i = 0; i < 20'000; ++i)
    EXPECT_TRUE(versions.accept(fmt::format("t/{}", i), i));
  EXPECT_LE(counter(versions, "object_versions"), 4096u);
  EXPECT_GT(counter(versions, "object_versions"), 2000u);
  EXPECT_EQ(counter(versions, "object_versions") + counter(versions, "object_versions_not_kept"),
            20'000u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines.front().find("--memory"), std::string::npos);
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_FALSE(versions.accept(fmt::format("t/{}", i + 1), i + 100));
}

TEST(ObjectVersions, ShareATableInSpacesOfTheirOwn) {
  const auto table = std::make_shared<VersionTable>();
  {
    ObjectVersions first({.table = table});
    EXPECT_TRUE(first.accept("t", 1));
  }
  ObjectVersions next({.table = table}), cache({.table = table, .space = "cache"});
  EXPECT_FALSE(next.accept("t", 2));
  EXPECT_FALSE(cache.contains("t"));
  EXPECT_TRUE(cache.accept("t", 2));
  EXPECT_EQ(next.digest("v"), cache.digest("v"));
}

TEST(ObjectVersions, EachStoreAndEachCacheHasASpaceOfItsOwn) {
  StoreConfig config, other;
  other.version_space = 1;
  std::set<std::string> spaces;
  for (const StoreConfig& each : {config, other})
    for (const VersionOwner owner : {VersionOwner::store, VersionOwner::cache})
      spaces.insert(version_options(each, owner).space);
  EXPECT_EQ(spaces.size(), 4u);
}

TEST(ObjectVersions, ManyThreadsAgree) {
  ObjectVersions versions({});
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i)
        accepted += versions.accept(std::to_string(i), static_cast<std::uint64_t>(t));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, 2000);
  EXPECT_EQ(counter(versions, "object_versions"), 2000u);
}

}  // namespace object_versions_test
}  // namespace batchfs
