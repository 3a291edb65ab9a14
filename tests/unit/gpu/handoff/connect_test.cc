#include "gpu/handoff/connect.h"

#include <filesystem>
#include <fstream>

#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace connect_test {

/// A directory whose path is longer than a socket's address; deleted with its contents.
class Directory {
 public:
  Directory() : top_(temporary_directory()), path_(top_) {
    for (int i = 0; i < 4; ++i) path_ += "/" + std::string(40, static_cast<char>('a' + i));
    std::filesystem::create_directories(path_);
  }
  ~Directory() { std::filesystem::remove_all(top_); }
  const std::string& top() const { return top_; }
  const std::string& path() const { return path_; }

 private:
  std::string top_, path_;
};

/// A server at `path`, reached through the open directory if the path is too long.
class Listening {
 public:
  Listening(const std::string& path, int type = SOCK_SEQPACKET)
      : fd_(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) {
    const int directory =
        ::open(std::filesystem::path(path).parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    sockaddr_un address;
    EXPECT_TRUE(unix_address(path, directory, address));
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    EXPECT_EQ(::listen(fd_, 5), 0);
    ::close(directory);
  }
  ~Listening() { ::close(fd_); }

 private:
  const int fd_;
};

/// The errno that connecting ends with; 0 when it does not fail.
int failure_of(const std::string& path) {
  const int fd = connect_to(path);
  if (fd < 0) return errno;
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  ::close(fd);
  return 0;
}

int open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

TEST(UnixAddress, IsThePathOrItsEndBelowTheOpenDirectory) {
  sockaddr_un address;
  ASSERT_TRUE(unix_address("/run/s", 5, address));
  EXPECT_EQ(address.sun_family, AF_UNIX);
  EXPECT_STREQ(address.sun_path, "/run/s");
  const std::string fits = "/" + std::string(106, 'x'),
                    too_long = "/run/" + std::string(102, 'x') + "/s";
  ASSERT_TRUE(unix_address(fits, 5, address));
  EXPECT_EQ(address.sun_path, fits);
  ASSERT_TRUE(unix_address("/" + std::string(107, 'x') + "/s", 5, address));
  EXPECT_STREQ(address.sun_path, "/proc/self/fd/5/s");
  ASSERT_TRUE(unix_address(too_long, 123, address));
  EXPECT_STREQ(address.sun_path, "/proc/self/fd/123/s");
  EXPECT_FALSE(unix_address("/run/" + std::string(107, 'x'), 5, address))
      << "the name itself is too long";
  EXPECT_FALSE(unix_address(std::string(108, 'x'), 5, address)) << "no directory";
}

TEST(ConnectTo, ReachesSocketsAtPathsOfAnyLength) {
  const Directory directory;
  ASSERT_GT(directory.path().size(), sizeof(sockaddr_un::sun_path));
  const Listening near(directory.top() + "/s"), far(directory.path() + "/s");
  std::filesystem::create_symlink(directory.path() + "/s", directory.top() + "/link");
  const int before = open_descriptors();
  for (const std::string& path :
       {directory.top() + "/s", directory.path() + "/s", directory.top() + "/link"})
    EXPECT_EQ(failure_of(path), 0) << path;
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ConnectTo, SaysWhyItCannot) {
  const Directory directory;
  const std::string& top = directory.top();
  std::ofstream(top + "/file") << "text";
  std::filesystem::create_symlink(top + "/loop", top + "/loop");
  { const Listening gone(top + "/dead"); }
  const Listening stream(top + "/stream", SOCK_STREAM);
  const int before = open_descriptors();
  EXPECT_EQ(failure_of(top + "/none"), ENOENT);
  EXPECT_EQ(failure_of(directory.path() + "/none"), ENOENT);
  EXPECT_EQ(failure_of(""), ENOENT);
  EXPECT_EQ(failure_of(top + "/file"), ECONNREFUSED);
  EXPECT_EQ(failure_of(top + "/file/s"), ENOTDIR);
  EXPECT_EQ(failure_of(top + "/dead"), ECONNREFUSED) << "a socket whose server has gone";
  EXPECT_EQ(failure_of(top + "/stream"), EPROTOTYPE);
  EXPECT_EQ(failure_of(top + "/loop"), ELOOP);
  EXPECT_EQ(failure_of("/" + std::string(5000, 'x')), ENAMETOOLONG);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ConnectTo, AServerThatLetsNobodyInIsNotWaitedForLong) {
  const Directory directory;
  const std::string path = directory.top() + "/s";
  const Listening server(path);
  std::vector<int> waiting;
  int fd;
  while ((fd = connect_to(path, std::chrono::milliseconds(1))) >= 0 && waiting.size() < 1000)
    waiting.push_back(fd);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_LT(waiting.size(), 1000u);
  for (const int one : waiting) ::close(one);
}

}  // namespace connect_test
}  // namespace batchfs::handoff
