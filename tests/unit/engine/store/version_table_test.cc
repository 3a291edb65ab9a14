#include "engine/store/version_table.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
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
  EXPECT_EQ(table.find("a", 1), std::nullopt);
  EXPECT_EQ(table.accept("a", 3, 1), Accepted::yes);
  EXPECT_EQ(table.find("a"), 1u);
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
  table.limit(1 << 20);
  std::size_t count = 0;
  while (table.accept(key_of(count), 1) == Accepted::yes) ++count;
  EXPECT_GT(count, 20'000u);
  EXPECT_LE(count, (1u << 20) / 16);
  EXPECT_EQ(table.find(key_of(count)), std::nullopt);
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(table.accept(key_of(i), 2), Accepted::other_version);
  table.limit(8 << 20);
  EXPECT_EQ(table.accept(key_of(count), 1), Accepted::yes);
  EXPECT_EQ(table.find(key_of(count)), 1u);
}

}  // namespace version_table_test
}  // namespace batchfs
