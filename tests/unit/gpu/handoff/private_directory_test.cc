#include "gpu/handoff/private_directory.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace private_directory_test {

TEST(PrivateDirectory, IsMadeForThisUserAloneAndPassedOverWhereItIsNot) {
  const std::string top = temporary_directory();
  const char* before = ::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("XDG_RUNTIME_DIR", top.c_str(), 1);
  const std::string own = top + "/batchfs";
  EXPECT_EQ(private_directories().front(), own);
  EXPECT_EQ(private_directory(), own);
  struct stat at;
  ASSERT_EQ(::stat(own.c_str(), &at), 0);
  EXPECT_EQ(at.st_mode & 07777, 0700u);
  for (const mode_t mode : {0750, 0701, 0777}) {
    ASSERT_EQ(::chmod(own.c_str(), mode), 0);
    EXPECT_NE(private_directory(), own) << mode;
  }
  ASSERT_EQ(::chmod(own.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(top.c_str(), 0777), 0);
  EXPECT_NE(private_directory(), own) << "all may replace it";
  if (before != nullptr)
    ::setenv("XDG_RUNTIME_DIR", saved.c_str(), 1);
  else
    ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_THAT(private_directories(),
              testing::Contains("/tmp/batchfs-" + std::to_string(::geteuid())));
  std::filesystem::remove_all(top);
}

}  // namespace private_directory_test
}  // namespace batchfs::handoff
