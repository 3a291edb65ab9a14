#include "engine/store/store_environment.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace store_environment_test {

TEST(StoreEnvironment, ParsesUtcTimes) {
  EXPECT_EQ(parse_utc_time("2015-08-30T12:36:00Z"),
            std::chrono::system_clock::from_time_t(1440938160));
  EXPECT_EQ(parse_utc_time("2015-08-30T12:36:00.123456Z"),
            std::chrono::system_clock::from_time_t(1440938160));
  EXPECT_EQ(parse_utc_time("2015-08-30T12:36:00+00:00"),
            std::chrono::system_clock::from_time_t(1440938160));
  for (const char* wrong :
       {"", "soon", "2015-08-30", "2015-08-30T12:36:00", "2015-08-30T12:36:00+02:00"})
    EXPECT_FALSE(parse_utc_time(wrong)) << wrong;
}

TEST(StoreEnvironment, ReadsFilesAndTheirModes) {
  const StoreEnvironment real = process_environment(nullptr);
  const std::string path = testing::TempDir() + "/batchfs-environment";
  std::ofstream(path) << "text\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(real.file(path)->text, "text\n");
  EXPECT_FALSE(real.file(path)->others_can_read);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_TRUE(real.file(path)->others_can_read);
  EXPECT_FALSE(real.file(path + "-absent"));
  EXPECT_FALSE(real.file(path + "/below"));
  EXPECT_EQ(error_of([&] { real.file(testing::TempDir()); }).code(), ErrorCode::io);
  EXPECT_EQ(error_of([&] { real.file("/dev/zero"); }).code(), ErrorCode::invalid_argument);
}

TEST(StoreEnvironment, AServiceOfTheSystemHasAHomeToo) {
  const StoreEnvironment real = process_environment(nullptr);
  const char* home = std::getenv("HOME");
  const std::string before = home != nullptr ? home : "";
  ::setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(real.in_home(".aws"), "/somewhere/.aws");
  ::unsetenv("HOME");
  ASSERT_NE(::getpwuid(::getuid()), nullptr);
  EXPECT_EQ(real.variable("HOME"), ::getpwuid(::getuid())->pw_dir);
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

TEST(StoreEnvironment, AnEmptyVariableIsUnset) {
  const StoreEnvironment real = process_environment(nullptr);
  ::setenv("BATCHFS_TEST_VARIABLE", "", 1);
  EXPECT_FALSE(real.variable("BATCHFS_TEST_VARIABLE"));
  ::setenv("BATCHFS_TEST_VARIABLE", "x", 1);
  EXPECT_EQ(real.first_variable({"BATCHFS_ABSENT", "BATCHFS_TEST_VARIABLE"}), "x");
}

}  // namespace store_environment_test
}  // namespace batchfs
