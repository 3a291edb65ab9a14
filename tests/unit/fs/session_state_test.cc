#include "fs/session_state.h"

#include <cstring>

#include <gtest/gtest.h>
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
    first.identify("these views");
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
  EXPECT_NO_THROW(next.identify("these views"));
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

TEST_F(SessionStateTest, OtherInodeNumbersAreRefused) {
  SessionState(fd).identify("these views");
  SessionState next(fd);
  try {
    next.identify("other views");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stale);
  }
}

TEST_F(SessionStateTest, TheStoreWasReadAgain) {
  {
    SessionState first(fd);
    EXPECT_EQ(first.reading_time(), first.mount_time());
    first.identify("these views");
    EXPECT_FALSE(first.was_identified_again());
    EXPECT_EQ(first.reading(), kFirstReading);
    EXPECT_EQ(first.reading_time(), first.mount_time());
    EXPECT_EQ(first.identify_again("longer views", 12345), 2u);
    EXPECT_EQ(first.identify_again("the longest views", 23456), 3u);
  }
  SessionState next(fd);
  EXPECT_TRUE(next.was_identified_again());
  EXPECT_EQ(next.identity(), "the longest views");
  EXPECT_EQ(next.reading(), 3u);
  EXPECT_EQ(next.reading_time(), 23456);
  EXPECT_NO_THROW(next.identify("the longest views"));
  EXPECT_THROW(next.identify("these views"), Error);
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
  std::string identity = "3 abc";  // as Generation::identity() of a view that joins stores
  for (int i = 0; i < 100; ++i) identity += " store" + std::to_string(i) + "=1CECHNKREP0F1RSTCMT0";
  SessionState(fd).identify(identity);
  EXPECT_EQ(SessionState(fd).identity(), identity);
  EXPECT_THROW(SessionState(fd).identify(identity + "0"), Error);
  SessionState next(fd);
  EXPECT_THROW(next.identify_again(std::string(20'000, 'x'), 1), Error);
  EXPECT_EQ(next.identity(), identity);
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
