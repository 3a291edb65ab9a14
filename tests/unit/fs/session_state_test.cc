#include "fs/session_state.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "fs/generations/known_inodes.h"

namespace batchfs {
namespace session_state_test {

class SessionStateTest : public testing::Test {
 protected:
  void TearDown() override { ::close(fd); }
  ErrorCode code_of_opening() const {
    try {
      SessionState state(fd);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  }
  const int fd = SessionState::create();
};

TEST_F(SessionStateTest, IsNewAtFirst) {
  SessionState state(fd);
  EXPECT_FALSE(state.is_agreed());
  EXPECT_TRUE(state.opened_files().empty());
  EXPECT_EQ(state.next_daemon(), 1u);
  EXPECT_EQ(state.next_daemon(), 2u);
}

TEST_F(SessionStateTest, TheNextDaemonFindsWhatTheFirstLeft) {
  const std::byte request[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::time_t mounted = 0;
  {
    SessionState first(fd);
    mounted = first.mount_time();
    first.next_daemon();
    first.keep_init_request(request);
    first.agree(0x123456789abcdef);
    first.begin_reading("these views", 1, 0);
    const std::uint32_t a = first.add(7, 1), b = first.add(8, 2), c = first.add(9, 0, {5, 6});
    first.set_handles(a, 1);
    first.set_handles(b, 2);
    first.set_handles(c, 3);
    first.remove(b);
  }
  SessionState next(fd);
  EXPECT_TRUE(next.is_agreed());
  EXPECT_EQ(next.flags(), 0x123456789abcdefu);
  ASSERT_EQ(next.init_request().size(), sizeof request);
  EXPECT_EQ(std::memcmp(next.init_request().data(), request, sizeof request), 0);
  EXPECT_EQ(next.mount_time(), mounted);
  EXPECT_EQ(next.next_daemon(), 2u);
  EXPECT_EQ(next.reading().identity, "these views");
  const auto left = next.opened_files();
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].ino, 7u);
  EXPECT_EQ(left[0].backing_id, 1);
  EXPECT_EQ(left[0].handles, 1u);
  EXPECT_EQ(left[1].ino, 9u);
  EXPECT_EQ(left[1].backing_id, 0);
  EXPECT_EQ(left[1].digest, (ContentDigest{5, 6}));
  EXPECT_EQ(left[1].handles, 3u);
  next.remove(left[0].slot);
  EXPECT_EQ(SessionState(fd).opened_files().size(), 1u);
}

TEST_F(SessionStateTest, ASlotThatTheDaemonBeforeTookMeanwhileIsNotFree) {
  SessionState before(fd);
  before.next_daemon();
  SessionState next(fd);  // opened while the other serves, as `mount --replace` does
  before.set_handles(before.add(7, 0, {5, 6}), 1);
  next.next_daemon();
  next.add(8, 0, {7, 8});
  const auto both = SessionState(fd).opened_files();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].ino, 7u);
  EXPECT_EQ(both[0].digest, (ContentDigest{5, 6}));
  EXPECT_EQ(both[1].ino, 8u);
}

TEST_F(SessionStateTest, TheNewestReadingIsKnown) {
  {
    SessionState first(fd);
    EXPECT_EQ(first.reading().number, 0u);
    EXPECT_EQ(first.begin_reading("these views", 12, 3), kFirstReading);
    EXPECT_EQ(first.reading().time, first.mount_time());
    EXPECT_EQ(first.begin_reading("longer views", 12345, 4), 2u);
    EXPECT_EQ(first.begin_reading("the longest views", 23456, 5), 3u);
  }
  const SessionState::Reading known = SessionState(fd).reading();
  EXPECT_EQ(known.number, 3u);
  EXPECT_EQ(known.identity, "the longest views");
  EXPECT_EQ(known.time, 23456);
  EXPECT_EQ(known.version_slot, 5u);
}

TEST_F(SessionStateTest, EachReadingHasItsVersions) {
  SessionState first(fd);
  EXPECT_EQ(first.known_reading().versions, nullptr);
  const VersionSlots::Table one = first.new_versions();
  one.table->accept("a", 5);
  first.begin_reading("these views", 1, one.slot);
  const VersionSlots::Table two = first.new_versions();
  EXPECT_EQ(two.table->find("a"), std::nullopt);
  two.table->accept("a", 6);
  EXPECT_EQ(SessionState(fd).known_reading().versions->find("a"), 5u);
  first.begin_reading("longer views", 2, two.slot);
  EXPECT_EQ(SessionState(fd).known_reading().versions->find("a"), 6u);
  EXPECT_EQ(one.table->find("a"), 5u) << "files that are open need it";
}

TEST_F(SessionStateTest, TheNewestVersionsStayWithoutAProcess) {
  {
    SessionState first(fd);
    const VersionSlots::Table one = first.new_versions();
    one.table->accept("a", 5);
    first.begin_reading("these views", 1, one.slot);
  }
  SessionState next(fd);
  const VersionSlots::Table two = next.new_versions();  // of a reading that fails
  EXPECT_EQ(next.known_reading().versions->find("a"), 5u);
}

TEST_F(SessionStateTest, ManyReadingsTakeTheMemoryOfFew) {
  SessionState state(fd);
  std::vector<VersionSlots::Table> used;
  for (int i = 0; i < 100; ++i) {
    VersionSlots::Table table = state.new_versions();
    for (int object = 0; object < 20'000; ++object) table.table->accept(std::to_string(object), 1);
    state.begin_reading("these views", i, table.slot);
    used.push_back(std::move(table));
    if (used.size() > 2) used.erase(used.begin());
  }
  struct stat file;
  ASSERT_EQ(::fstat(fd, &file), 0);
  EXPECT_LT(file.st_blocks * 512, 8 << 20);
}

TEST_F(SessionStateTest, TheNextDaemonKnowsTheKernelsInodes) {
  Ino given = 0;
  {
    const auto inodes = SessionState::inodes(fd);
    EXPECT_FALSE(inodes->has_given());
    given = inodes->refer({kFirstReading, 77});
  }
  const auto inodes = SessionState::inodes(fd);
  EXPECT_TRUE(inodes->has_given());
  ASSERT_TRUE(inodes->find(given));
  EXPECT_EQ(inodes->find(given)->number, FileNumber{77});
}

TEST_F(SessionStateTest, AnIdentityOfManyStoresIsKeptWhole) {
  std::string identity = "3 abc";  // like Generation::identity() of a view that joins stores
  for (int i = 0; i < 100; ++i) identity += " store" + std::to_string(i) + "=1CECHNKREP0F1RSTCMT0";
  SessionState(fd).begin_reading(identity, 1, 0);
  SessionState next(fd);
  EXPECT_EQ(next.reading().identity, identity);
  EXPECT_THROW(next.begin_reading(std::string(20'000, 'x'), 1, 0), Error);
  EXPECT_EQ(next.reading().identity, identity);
}

TEST_F(SessionStateTest, ARequestThatIsTooLongIsNotKept) {
  const std::vector<std::byte> request(1000);
  SessionState state(fd);
  state.keep_init_request(request);
  state.agree(1);
  EXPECT_FALSE(state.is_agreed());
}

TEST_F(SessionStateTest, FullAndReused) {
  SessionState state(fd);
  state.next_daemon();
  std::uint32_t count = 0, last = 0;
  for (std::uint32_t slot; (slot = state.add(1 + count, 1)) != SessionState::kNoSlot; ++count)
    last = slot;
  EXPECT_EQ(state.opened_files().size(), count);
  EXPECT_GE(count, 10'000u);
  state.remove(last);
  EXPECT_EQ(state.add(5, 5), last);
  SessionState next(fd);
  next.next_daemon();
  EXPECT_EQ(next.add(6, 6), SessionState::kNoSlot);
}

TEST_F(SessionStateTest, AnotherVersionsStateIsRefused) {
  const std::uint64_t other = 0x3165746174736662;
  ASSERT_EQ(::pwrite(fd, &other, sizeof other, 0), static_cast<ssize_t>(sizeof other));
  EXPECT_EQ(code_of_opening(), ErrorCode::not_supported);
}

TEST_F(SessionStateTest, AnotherSizeIsRefused) {
  ASSERT_EQ(::ftruncate(fd, 100), 0);
  EXPECT_EQ(code_of_opening(), ErrorCode::not_supported);
}

TEST_F(SessionStateTest, NonsenseIsRefused) {
  const std::vector<char> nonsense(600, '\x7f');
  ASSERT_EQ(::pwrite(fd, nonsense.data(), nonsense.size(), 8),
            static_cast<ssize_t>(nonsense.size()));
  EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
}

}  // namespace session_state_test
}  // namespace batchfs
