#include "engine/store/version_table.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace batchfs {
namespace version_table_test {

using Accepted = VersionTable::Accepted;

std::string key_of(std::size_t number) { return "t/c/" + std::to_string(number); }

TEST(VersionTableTest, AnObjectKeepsTheVersionThatCameFirst) {
  VersionTable table;
  EXPECT_EQ(table.find("a"), std::nullopt);
  EXPECT_EQ(table.accept("a", 1), Accepted::yes);
  EXPECT_EQ(table.accept("b", 2), Accepted::yes);
  EXPECT_EQ(table.accept("a", 1), Accepted::yes);
  EXPECT_EQ(table.accept("a", 2), Accepted::other_version);
  EXPECT_EQ(table.find("a"), 1u);
  EXPECT_EQ(table.find("b"), 2u);
  EXPECT_EQ(table.find("c"), std::nullopt);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find("a", "other"), std::nullopt);
  EXPECT_EQ(table.accept("a", 3, "other"), Accepted::yes);
  EXPECT_EQ(table.find("a"), 1u);
}

TEST(VersionTableTest, WithoutMemoryTheReasonComesFirst) {
  const Error error = VersionTable::no_memory(EBUSY);
  EXPECT_EQ(error.why(), std::strerror(EBUSY));
  EXPECT_EQ(error.where(), "the memory for the versions of objects");
}

/// Names of objects like those of stores: chunks of versions 2 and 3, shards, objects of Icechunk.
std::vector<std::string> realistic_keys(std::size_t count, std::uint64_t seed) {
  std::vector<std::string> keys;
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; keys.size() < count; ++i) {
    keys.push_back(fmt::format("v/{}.0", i));
    keys.push_back(fmt::format("t/{}", i));
    keys.push_back(fmt::format("{}.{}", i / 40, i % 40));
    keys.push_back(fmt::format("2m_temperature/{}.{}.0", i / 50, i % 50));
    keys.push_back(fmt::format("t/c/{}", i));
    keys.push_back(fmt::format("group/temperature/c/{}/{}/0", i / 60, i % 60));
    keys.push_back(fmt::format("chunks/{:016x}{:04x}", random(), random() % 65536));
    keys.push_back(fmt::format("manifests/{:012x}", random() >> 16));
  }
  keys.resize(count);
  return keys;
}

TEST(VersionTableTest, NoTwoObjectsOfOneTableShareAnIdentity) {
  constexpr std::size_t kSecrets = 100, kKeys = 2500;
  const std::vector<std::string> spaces{"s", "c", "sother", "cother"};  // 10^6 identities in all
  std::mt19937_64 random(7);
  for (std::size_t s = 0; s < kSecrets; ++s) {
    const KeyedHash::Key secret{random() | 1, random() | 1};
    std::vector<VersionTable::Identity> identities;
    for (const std::string& space : spaces)
      for (const std::string& key : realistic_keys(kKeys, s))
        identities.push_back(VersionTable::identity(secret, space, key));
    std::sort(identities.begin(), identities.end());
    EXPECT_EQ(std::adjacent_find(identities.begin(), identities.end()), identities.end()) << s;
    // One half alone selects an object's place, and identifies a version.
    EXPECT_EQ(std::adjacent_find(identities.begin(), identities.end(),
                                 [](const auto& a, const auto& b) { return a[0] == b[0]; }),
              identities.end());
  }
}

TEST(VersionTableTest, AnObjectIsTheSameInEveryStoreAndCacheOfATable) {
  // Each key has a version in each space. Two keys with the same identity would differ.
  const std::vector<std::string> spaces{"s", "c", "sother", "cother"};
  const std::vector<std::string> keys = realistic_keys(5000, 1);
  for (int round = 0; round < 4; ++round) {
    VersionTable table;
    for (std::size_t s = 0; s < spaces.size(); ++s)
      for (std::size_t k = 0; k < keys.size(); ++k)
        ASSERT_EQ(table.accept(keys[k], 1 + s * keys.size() + k, spaces[s]), Accepted::yes)
            << keys[k];
    EXPECT_EQ(table.size(), spaces.size() * keys.size());
  }
}

TEST(VersionTableTest, AKeyAndItsSpaceAreToldApart) {
  const KeyedHash::Key secret{1, 2};
  EXPECT_NE(VersionTable::identity(secret, "sa", "b"), VersionTable::identity(secret, "s", "ab"));
  EXPECT_NE(VersionTable::identity(secret, "", "ab"), VersionTable::identity(secret, "ab", ""));
}

TEST(VersionTableTest, DigestsOfVersionsAreOfTheTable) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(VersionTable::kBytes)), 0);
  const VersionTable table(fd, 0), next(fd, 0), other;
  EXPECT_NE(table.digest("\"1\""), VersionTable::kUnknown);
  EXPECT_EQ(table.digest("\"1\""), next.digest("\"1\""));
  EXPECT_NE(table.digest("\"1\""), table.digest("\"2\""));
  EXPECT_NE(table.digest("\"1\""), other.digest("\"1\""));
  ::close(fd);
}

TEST(VersionTableTest, AnEntryOfADaemonThatWasKilledInTheMiddleIsTakenByTheNext) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(VersionTable::kBytes)), 0);
  VersionTable(fd, 0).accept("a", 5);
  // Finds the entry after the first page; it holds the second half and the version.
  std::vector<std::uint64_t> words(VersionTable::kBytes / sizeof(std::uint64_t) / 1024);
  ASSERT_EQ(::pread(fd, words.data(), words.size() * 8, 4096),
            static_cast<ssize_t>(words.size() * 8));
  const auto at = std::find_if(words.begin(), words.end(), [](auto word) { return word != 0; });
  ASSERT_NE(at, words.end());
  ASSERT_EQ(at[2], 5u);
  const std::uint64_t zeros[2] = {};
  ASSERT_EQ(::pwrite(fd, zeros, sizeof zeros, 4096 + (at - words.begin() + 1) * 8),
            static_cast<ssize_t>(sizeof zeros));
  VersionTable next(fd, 0);
  EXPECT_EQ(next.find("a"), std::nullopt);
  EXPECT_EQ(next.accept("a", 6), Accepted::yes);
  EXPECT_EQ(next.accept("a", 7), Accepted::other_version);
  EXPECT_EQ(next.find("a"), 6u);
  EXPECT_EQ(next.size(), 1u);
  ::close(fd);
}

TEST(VersionTableTest, AClearedOneIsEmptyAndTakesNoMemory) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(4096 + 2 * VersionTable::kBytes)), 0);
  const std::uint64_t behind = 4096 + VersionTable::kBytes / 4096 * 4096;
  VersionTable::clear(fd, 4096);  // an unused one
  VersionTable(fd, behind).accept("beside", 9);
  {
    VersionTable table(fd, 4096);
    for (std::size_t i = 0; i < 50'000; ++i) table.accept(key_of(i), 5);
  }
  VersionTable::clear(fd, 4096);
  struct stat file;
  ASSERT_EQ(::fstat(fd, &file), 0);
  EXPECT_LT(file.st_blocks * 512, 512 << 10);
  VersionTable next(fd, 4096);
  EXPECT_EQ(next.size(), 0u);
  for (std::size_t i = 0; i < 50'000; ++i) ASSERT_EQ(next.accept(key_of(i), 6), Accepted::yes) << i;
  EXPECT_EQ(VersionTable(fd, behind).find("beside"), 9u);
  ::close(fd);
}

TEST(VersionTableTest, AnUnknownVersionMayBecomeKnown) {
  VersionTable table;
  EXPECT_EQ(table.accept("a", VersionTable::kUnknown), Accepted::yes);
  EXPECT_EQ(table.find("a"), VersionTable::kUnknown);
  EXPECT_EQ(table.accept("a", 5), Accepted::yes);
  EXPECT_EQ(table.accept("a", VersionTable::kUnknown), Accepted::yes);
  EXPECT_EQ(table.accept("a", 6), Accepted::other_version);
}

TEST(VersionTableTest, TheNextDaemonFindsWhatIsInTheFile) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(4096 + VersionTable::kBytes)), 0);
  VersionTable(fd, 4096).accept("a", 1);
  VersionTable next(fd, 4096);
  EXPECT_EQ(next.find("a"), 1u);
  EXPECT_EQ(next.accept("a", 2), Accepted::other_version);
  EXPECT_EQ(next.size(), 1u);
  char before[4096] = {}, zeros[4096] = {};
  ASSERT_EQ(::pread(fd, before, sizeof before, 0), 4096);
  EXPECT_EQ(std::memcmp(before, zeros, sizeof zeros), 0);
  ::close(fd);
}

TEST(VersionTableTest, ManyThreadsSeeOneVersionOfEachObject) {
  VersionTable table;
  constexpr std::size_t kObjects = 50'000;
  std::vector<std::atomic<std::uint64_t>> accepted(kObjects);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::uint64_t thread = 1; thread <= 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < kObjects; ++i)
        if (table.accept(key_of(i), thread) == Accepted::yes && accepted[i].exchange(thread) != 0)
          ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table.size(), kObjects);
  for (std::size_t i = 0; i < kObjects; ++i) EXPECT_EQ(table.find(key_of(i)), accepted[i]) << i;
}

TEST(VersionTableTest, WhatHasNoRoomIsNotKept) {
  VersionTable table;
  table.limit(3 << 19);
  std::size_t count = 0;
  while (table.accept(key_of(count), 1) == Accepted::yes) ++count;
  EXPECT_GT(count, 20'000u);
  EXPECT_LE(count, (3u << 19) / 24);
  EXPECT_EQ(table.find(key_of(count)), std::nullopt);
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(table.accept(key_of(i), 2), Accepted::other_version);
  table.limit(12 << 20);
  EXPECT_EQ(table.accept(key_of(count), 1), Accepted::yes);
  EXPECT_EQ(table.find(key_of(count)), 1u);
}

}  // namespace version_table_test
}  // namespace batchfs
