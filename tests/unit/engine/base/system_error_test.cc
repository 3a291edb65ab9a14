#include "engine/base/system_error.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

namespace batchfs {
namespace system_error_test {

TEST(SystemError, NamesTheLimitOfOpenFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit now = before;
  now.rlim_cur = 77;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_THAT(describe_system_error(EMFILE),
              testing::AllOf(testing::HasSubstr("77"), testing::HasSubstr("RLIMIT_NOFILE")));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(describe_system_error(ENFILE), testing::HasSubstr("fs.file-max"));
}

TEST(SystemError, NamesTheLimitOfAddressSpace) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit now = before;
  now.rlim_cur = std::uint64_t{1} << 46;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &now), 0);
  EXPECT_EQ(describe_system_error(ENOMEM),
            "Cannot allocate memory: this process may have 70368744177664 bytes of address space "
            "(RLIMIT_AS); raise it with ulimit -v or LimitAS=");
  EXPECT_EQ(describe_system_error(EIO), std::strerror(EIO));
  now.rlim_cur = RLIM_INFINITY;
  if (before.rlim_max == RLIM_INFINITY) {
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &now), 0);
    EXPECT_EQ(describe_system_error(ENOMEM), std::strerror(ENOMEM));
  }
  ::setrlimit(RLIMIT_AS, &before);
}

TEST(SystemError, NamesTheLimitOfThreads) {
  EXPECT_THAT(describe_thread_limit(),
              testing::AllOf(testing::HasSubstr("RLIMIT_NPROC"), testing::HasSubstr("pids.max")));
}

TEST(SystemError, ExplainsThreadsThatCouldNotBeStarted) {
  const auto thrown = std::make_exception_ptr(
      std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(explain(thrown).code(), ErrorCode::no_memory);
  EXPECT_EQ(explain(thrown).why(), describe_thread_limit());
  EXPECT_EQ(explain(std::make_exception_ptr(Error(ErrorCode::stale, "why"))).code(),
            ErrorCode::stale);
  EXPECT_EQ(
      explain(std::make_exception_ptr(std::system_error(EIO, std::generic_category()))).code(),
      ErrorCode::internal);
}

TEST(SystemError, ADescriptorThatCouldNotBeOpenedThrows) {
  EXPECT_EQ(opened(7, "eventfd"), 7);
  errno = EMFILE;
  try {
    opened(-1, "eventfd");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("RLIMIT_NOFILE"),
                                             testing::HasSubstr("(eventfd)")));
  }
}

TEST(SystemError, OthersAreAsTheSystemSays) {
  EXPECT_EQ(describe_system_error(EIO), std::strerror(EIO));
}

}  // namespace system_error_test
}  // namespace batchfs
