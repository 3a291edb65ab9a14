#include "engine/store/version_slots.h"

#include <csignal>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {
namespace version_slots_test {

constexpr std::uint32_t kNone = VersionSlots::kCount;

class VersionSlotsTest : public testing::Test {
 protected:
  VersionSlotsTest() {
    EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(4096 + VersionSlots::kBytes)), 0);
  }
  ~VersionSlotsTest() override { ::close(fd_); }
  std::int64_t bytes() const {
    struct stat file;
    EXPECT_EQ(::fstat(fd_, &file), 0);
    return file.st_blocks * 512;
  }

  const int fd_ = ::memfd_create("test", MFD_CLOEXEC);
  const VersionSlots slots_{fd_, 4096};
};

TEST_F(VersionSlotsTest, TablesBesideEachOther) {
  const VersionSlots::Table one = slots_.take(kNone), two = slots_.take(kNone);
  EXPECT_NE(one.slot, two.slot);
  one.table->accept("a", 1);
  two.table->accept("a", 2);
  EXPECT_EQ(one.table->find("a"), 1u);
  EXPECT_EQ(slots_.open(one.slot)->find("a"), 1u);
  EXPECT_EQ(slots_.open(two.slot)->find("a"), 2u);
}

TEST_F(VersionSlotsTest, WhatIsKeptOrUsedIsNotTaken) {
  std::optional<VersionSlots::Table> kept = slots_.take(kNone);
  kept->table->accept("a", 1);
  const std::uint32_t slot = kept->slot;
  kept.reset();
  std::set<std::uint32_t> taken;
  std::vector<VersionSlots::Table> tables;
  for (std::uint32_t i = 1; i < VersionSlots::kCount; ++i) {
    tables.push_back(slots_.take(slot));
    taken.insert(tables.back().slot);
  }
  EXPECT_EQ(taken.size(), VersionSlots::kCount - 1);
  EXPECT_FALSE(taken.contains(slot));
  EXPECT_THROW(slots_.take(slot), Error);
  EXPECT_EQ(slots_.open(slot)->find("a"), 1u);
  tables.pop_back();
  EXPECT_NO_THROW(slots_.take(slot));
}

TEST_F(VersionSlotsTest, AFreeOneIsEmptyAndTakesNoMemory) {
  {
    const VersionSlots::Table first = slots_.take(kNone), second = slots_.take(kNone);
    for (int i = 0; i < 50'000; ++i) {
      first.table->accept(std::to_string(i), 1);
      second.table->accept(std::to_string(i), 1);
    }
  }
  EXPECT_GT(bytes(), 2 << 20);
  const VersionSlots::Table third = slots_.take(kNone);
  EXPECT_LT(bytes(), 1 << 20);
  EXPECT_EQ(third.table->size(), 0u);
  EXPECT_EQ(third.table->find("1"), std::nullopt);
  EXPECT_EQ(third.table->accept("1", 7), VersionTable::Accepted::yes);
}

TEST_F(VersionSlotsTest, AProcessThatIsKilledUsesNothing) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    std::vector<VersionSlots::Table> tables;
    for (std::uint32_t i = 0; i < VersionSlots::kCount; ++i) tables.push_back(slots_.take(kNone));
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(slots_.take(kNone), Error);
  ::kill(other, SIGKILL);
  ASSERT_EQ(::waitpid(other, nullptr, 0), other);
  EXPECT_NO_THROW(slots_.take(kNone));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace version_slots_test
}  // namespace batchfs
