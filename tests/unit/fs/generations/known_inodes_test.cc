#include "fs/generations/known_inodes.h"

#include <random>
#include <set>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {
namespace known_inodes_test {

using File = KnownInodes::File;

/// The session's memory.
class KnownInodesTest : public testing::Test {
 protected:
  KnownInodesTest() {
    EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(4096 + KnownInodes::kBytes)), 0);
  }
  ~KnownInodesTest() override { ::close(fd_); }

  const int fd_ = ::memfd_create("known", MFD_CLOEXEC);
};

TEST_F(KnownInodesTest, AnInodeLivesUntilTheKernelHasForgottenIt) {
  KnownInodes known(fd_, 4096);
  const FileNumber wide = FileNumber{5} << 100 | 3;
  const Ino ino = known.refer({7, wide});
  EXPECT_GT(ino, kMaxCommonIno);
  EXPECT_EQ(known.refer({7, wide}), ino);
  EXPECT_EQ(known.find(File{7, wide}), ino);
  EXPECT_EQ(known.find(ino)->reading, 7u);
  EXPECT_EQ(known.find(ino)->number, wide);
  EXPECT_NE(known.refer({7, wide + 1}), ino);
  EXPECT_NE(known.refer({8, wide}), ino);
  EXPECT_EQ(known.count(7), 2u);
  EXPECT_EQ(known.forget(ino, 1), std::nullopt);
  EXPECT_TRUE(known.find(ino));
  EXPECT_EQ(known.forget(ino, 1), std::nullopt);
  EXPECT_FALSE(known.find(ino));
  EXPECT_FALSE(known.find(File{7, wide}));
  EXPECT_EQ(known.forget(ino, 1), std::nullopt);
  const Ino last = known.find(File{7, wide + 1}).value();
  EXPECT_EQ(known.forget(last, 100), 7u);  // the last one of its reading
  EXPECT_EQ(known.size(), 1u);
}

TEST_F(KnownInodesTest, NoNumberIsGivenTwice) {
  std::set<Ino> seen;
  for (int daemon = 0; daemon < 3; ++daemon) {
    KnownInodes known(fd_, 4096);
    for (int i = 0; i < 100; ++i) {
      const Ino ino = known.refer({1, 1000});
      EXPECT_TRUE(seen.insert(ino).second);
      known.forget(ino, 1);
    }
  }
}

TEST_F(KnownInodesTest, TheNextDaemonKnowsWhatTheOneBeforeGave) {
  std::vector<Ino> inos;
  {
    KnownInodes first(fd_, 4096);
    EXPECT_FALSE(first.has_given());
    for (FileNumber number = 8; number < 20; ++number)
      inos.push_back(first.refer({number < 14 ? 1u : 2u, number}));
    first.refer({2, 19});
    first.forget(inos[9], 1);
  }
  KnownInodes next(fd_, 4096);
  EXPECT_TRUE(next.has_given());
  EXPECT_EQ(next.size(), 11u);
  next.keep_only(2);
  EXPECT_EQ(next.size(), 5u);
  EXPECT_EQ(next.count(1), 0u);
  EXPECT_FALSE(next.find(inos[0]));
  EXPECT_EQ(next.find(File{2, 19}), inos[11]);
  EXPECT_EQ(next.forget(inos[11], 1), std::nullopt);  // it had two references
  EXPECT_TRUE(next.find(inos[11]));
}

TEST_F(KnownInodesTest, AgreesWithAMapForManyInAnyOrder) {
  KnownInodes known;
  std::map<Ino, std::pair<FileNumber, std::uint64_t>> expected;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    if (random() % 5 < 3) {
      const FileNumber number = 100 + random() % 5000;
      const Ino ino = known.refer({1, number});
      auto& entry = expected[ino];
      entry.first = number;
      ++entry.second;
    } else if (!expected.empty()) {
      const auto it = expected.lower_bound(random() % (expected.rbegin()->first + 1));
      known.forget(it->first, 1);
      if (--it->second.second == 0) expected.erase(it);
    }
  }
  EXPECT_EQ(known.size(), expected.size());
  for (const auto& [ino, entry] : expected) {
    ASSERT_TRUE(known.find(ino));
    EXPECT_EQ(known.find(ino)->number, entry.first);
    EXPECT_EQ(known.find(File{1, entry.first}), ino);
  }
  std::set<Ino> visited;
  std::uint32_t position = 0;
  do {
    int some = 0;
    position = known.visit(position, [&](Ino ino, const File&) {
      EXPECT_TRUE(visited.insert(ino).second);
      return ++some < 100;
    });
  } while (position != 0);
  EXPECT_EQ(visited.size(), expected.size());
}

TEST_F(KnownInodesTest, OneMoreThanThereMayBeIsRefused) {
  KnownInodes known;
  Ino last = 0;
  for (std::uint32_t i = 0; i < KnownInodes::kMax; ++i) last = known.refer({1, 100 + i});
  try {
    known.refer({1, 99});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
  }
  EXPECT_EQ(known.refer({1, 100}), known.find(File{1, 100}));
  known.forget(last, 1);
  EXPECT_GT(known.refer({1, 99}), last);
}

TEST_F(KnownInodesTest, NonsenseIsRefused) {
  const std::vector<char> nonsense(600, '\x7f');
  ASSERT_EQ(::pwrite(fd_, nonsense.data(), nonsense.size(), 4096),
            static_cast<ssize_t>(nonsense.size()));
  try {
    KnownInodes known(fd_, 4096);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
  }
}

}  // namespace known_inodes_test
}  // namespace batchfs
