#include "tools/service/stored_descriptors.h"

#include <cstdlib>
#include <functional>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batchfs {
namespace stored_descriptors_test {

/// Returns the result of `check` in a process that was started with the descriptors 3 to 5 under
/// these names.
bool holds(const char* names, const char* count, bool for_it, const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open("/dev/null", O_RDONLY);
    for (int fd = 3; fd <= 5; ++fd)
      if (fd != file) ::dup2(file, fd);
    ::setenv("LISTEN_PID", std::to_string(for_it ? ::getpid() : 1).c_str(), 1);
    ::setenv("LISTEN_FDS", count, 1);
    if (names != nullptr) ::setenv("LISTEN_FDNAMES", names, 1);
    const bool good = check() && std::getenv("LISTEN_PID") == nullptr &&
                      std::getenv("LISTEN_FDS") == nullptr &&
                      std::getenv("LISTEN_FDNAMES") == nullptr;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(StoredDescriptors, AreTakenByNameOnce) {
  EXPECT_TRUE(holds("a:b:a", "3", true, [] {
    StoredDescriptors stored;
    return stored.take("c") == -1 && stored.take("b") == 4 && stored.take("b") == -1 &&
           stored.take("a") == 3 && stored.take("a") == 5 && stored.take("a") == -1 &&
           (::fcntl(4, F_GETFD) & FD_CLOEXEC) != 0;
  }));
}

TEST(StoredDescriptors, AreThereUntilTheyAreTaken) {
  const auto are_there = [] {
    const bool before = StoredDescriptors::are_there();
    StoredDescriptors();
    return before && !StoredDescriptors::are_there();
  };
  EXPECT_TRUE(holds("a", "1", true, are_there));
  EXPECT_FALSE(holds("a", "1", false, are_there));
}

TEST(StoredDescriptors, AreHandedOnToAFork) {
  EXPECT_TRUE(holds("a:b", "2", true, [] {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool good = !StoredDescriptors::are_there() &&
                        StoredDescriptors::hand_on(parent + 1).empty() &&
                        StoredDescriptors::hand_on(parent) == std::vector{3, 4} &&
                        StoredDescriptors().take("b") == 4;
      ::_exit(good ? 0 : 1);
    }
    int status = -1;
    const bool good = ::waitpid(child, &status, 0) == child && status == 0;
    return StoredDescriptors().take("a") == 3 && good;
  }));
}

TEST(StoredDescriptors, OfAnotherProcessAreLeftAlone) {
  EXPECT_TRUE(holds("a:b:c", "3", false, [] {
    return StoredDescriptors().take("a") == -1 && ::fcntl(3, F_GETFD) == 0;
  }));
}

TEST(StoredDescriptors, NumbersThatMakeNoSense) {
  for (const char* count : {"", "0", "-5", "x"})
    EXPECT_TRUE(holds("a", count, true, [] { return StoredDescriptors().take("a") == -1; }))
        << count;
  // More than there are, and fewer names.
  EXPECT_TRUE(holds("a", "99999999999999999999", true, [] {
    StoredDescriptors stored;
    return stored.take("a") == 3 && stored.take("") == 4;
  }));
  EXPECT_TRUE(holds(nullptr, "1", true, [] { return StoredDescriptors().take("") == 3; }));
}

}  // namespace stored_descriptors_test
}  // namespace batchfs
