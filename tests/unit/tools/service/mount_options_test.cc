#include "tools/service/mount_options.h"

#include <gmock/gmock.h>

#include "tools/cli/command.h"

namespace batchfs {
namespace mount_options_test {

using testing::HasSubstr;

MountOptions options_of(const std::string& list) {
  MountOptions options;
  apply_mount_list(list, options);
  return options;
}

std::string refused(const std::string& list) {
  try {
    options_of(list);
    return "";
  } catch (const UsageError& error) {
    return error.why;
  }
}

TEST(MountOptions, AListHasTheNamesOfTheLongOptions) {
  const MountOptions options =
      options_of("memory=8M,no-passthrough,allow_other,hang-timeout=2.5,view=a.json,view=b.json");
  EXPECT_EQ(options.store.memory, std::uint64_t{8} << 20);
  EXPECT_TRUE(options.no_passthrough);
  EXPECT_TRUE(options.allow_other);
  EXPECT_FALSE(options.replace);
  EXPECT_EQ(options.hang_timeout, 2.5);
  EXPECT_EQ(options.views, (std::vector<std::string>{"a.json", "b.json"}));
}

TEST(MountOptions, ViewsOfTheCommandLineAndOfEachListAddUp) {
  MountOptions options;
  options.views = {"first.json"};
  apply_mount_list("view=a.json,memory=8M", options);
  apply_mount_list("view=b.json", options);
  EXPECT_EQ(options.views, (std::vector<std::string>{"first.json", "a.json", "b.json"}));
}

TEST(MountOptions, ABackslashKeepsACommaInAValue) {
  EXPECT_EQ(options_of(R"(view=a\,b.json)").views, std::vector<std::string>{"a,b.json"});
}

TEST(MountOptions, WhatMountItselfUnderstandsIsPassedOver) {
  EXPECT_EQ(refused("noauto,_netdev,x-systemd.automount,ro,"), "");
}

TEST(MountOptions, WhatCannotBeIsRefused) {
  EXPECT_THAT(refused("rw"), HasSubstr("read-only"));
  EXPECT_THAT(refused("remount"), HasSubstr("umount"));
  EXPECT_THAT(refused("memori=8M"), HasSubstr("memory"));
  EXPECT_THAT(refused("hang-timeout=long"), HasSubstr("-o hang-timeout=long"));
}

TEST(MountOptions, TheHelperKeepsWhatIsBatchfssOwn) {
  EXPECT_EQ(own_mount_options(R"(rw,noauto,memory=1G,view=a\,b.json,x-y)", false),
            R"(memory=1G,view=a\,b.json)");
  EXPECT_EQ(own_mount_options("memory=1G,unknown", false), "memory=1G,unknown");
  EXPECT_EQ(own_mount_options("memory=1G,unknown", true), "memory=1G");
}

TEST(MountOptions, AMountDoesNotReadFromItself) {
  MountOptions options;
  options.directory = "/nowhere/mount";
  options.store.store = "s3://bucket/nowhere/mount";
  EXPECT_NO_THROW(check_apart(options));
  options.store.store = "/nowhere/mounted";  // beside it
  EXPECT_NO_THROW(check_apart(options));
  for (const char* store : {"/nowhere/mount", "/nowhere/mount/store", "/nowhere", "/",
                            "file:///nowhere/mount/../mount/store"}) {
    options.store.store = store;
    EXPECT_THROW(check_apart(options), Error) << store;
  }
}

}  // namespace mount_options_test
}  // namespace batchfs
