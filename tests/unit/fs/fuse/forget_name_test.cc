#include "fs/fuse/forget_name.h"

#include <cstring>

#include <gtest/gtest.h>
#include <unistd.h>

#include "fs/fuse/fuse_abi.h"

namespace batchfs {
namespace forget_name_test {

/// Expects that `notify` writes one notification, with `flags`.
void expect_notification(bool (*notify)(int, Ino, std::string_view), std::uint32_t flags) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_TRUE(notify(ends[1], 77, "epoch-0000"));
  char bytes[100];
  const ssize_t size = ::read(ends[0], bytes, sizeof bytes);
  ASSERT_EQ(size, 16 + 16 + 11);
  fuse_abi::OutHeader header;
  std::memcpy(&header, bytes, sizeof header);
  EXPECT_EQ(header.length, 43u);
  EXPECT_EQ(header.error, 3);  // FUSE_NOTIFY_INVAL_ENTRY
  EXPECT_EQ(header.unique, 0u);
  fuse_abi::InvalidatedEntry entry;
  std::memcpy(&entry, bytes + sizeof header, sizeof entry);
  EXPECT_EQ(entry.parent, 77u);
  EXPECT_EQ(entry.name_length, 10u);
  EXPECT_EQ(entry.flags, flags);
  EXPECT_STREQ(bytes + 32, "epoch-0000");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ForgetName, IsOneNotification) { expect_notification(forget_name, 0); }

TEST(ForgetName, ExpiringIsOneWithAFlag) {
  expect_notification(expire_name, 1);  // FUSE_EXPIRE_ONLY
}

TEST(ForgetName, SaysWhetherItWasTaken) { EXPECT_FALSE(forget_name(-1, 1, "views")); }

}  // namespace forget_name_test
}  // namespace batchfs
