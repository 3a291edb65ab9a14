#include "engine/base/service_manager.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace batchfs {
namespace service_manager_test {

using std::chrono::milliseconds;

/// Plays systemd: a datagram socket, named in the environment.
class ServiceManager : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/batchfs-manager-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
  }
  void TearDown() override {
    if (socket_ >= 0) ::close(socket_);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    std::filesystem::remove_all(folder_);
  }

  /// `name` is a path, or '@' and a name.
  void listen(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }

  /// The next datagram; empty if none comes. `descriptor` receives the descriptor sent with it.
  std::string received(int* descriptor = nullptr, int patience_ms = 20000) {
    pollfd end{socket_, POLLIN, 0};
    if (::poll(&end, 1, patience_ms) != 1) return {};
    char text[256];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec part{text, sizeof text};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket_, &message, 0);
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (descriptor != nullptr && header != nullptr)
      std::memcpy(descriptor, CMSG_DATA(header), sizeof(int));
    return std::string(text, n < 0 ? 0 : static_cast<std::size_t>(n));
  }

  std::string folder_;
  int socket_ = -1;
};

TEST_F(ServiceManager, NothingIsToldWhereThereIsNone) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(notify_service_manager("READY=1"));
  setenv("WATCHDOG_USEC", "1000", 1);
  EXPECT_EQ(watchdog_interval(), std::nullopt);
}

TEST_F(ServiceManager, IsToldAtAPath) {
  listen(folder_ + "/notify");
  EXPECT_TRUE(notify_service_manager("READY=1\nSTATUS=serving"));
  EXPECT_EQ(received(), "READY=1\nSTATUS=serving");
}

TEST_F(ServiceManager, IsToldAtANameWithoutAFile) {
  listen("@batchfs-manager-test-" + std::to_string(::getpid()));
  EXPECT_TRUE(notify_service_manager("STOPPING=1"));
  EXPECT_EQ(received(), "STOPPING=1");
}

TEST_F(ServiceManager, KeepsDescriptors) {
  listen(folder_ + "/notify");
  const int mine[] = {socket_};
  EXPECT_TRUE(notify_service_manager("FDSTORE=1\nFDNAME=fuse", mine));
  int theirs = -1;
  EXPECT_EQ(received(&theirs), "FDSTORE=1\nFDNAME=fuse");
  struct stat one, other;
  ASSERT_EQ(::fstat(socket_, &one), 0);
  ASSERT_EQ(::fstat(theirs, &other), 0);
  EXPECT_EQ(one.st_ino, other.st_ino);
  ::close(theirs);
}

TEST_F(ServiceManager, AnAddressThatIsNoneIsPassedOver) {
  for (const std::string& name :
       {std::string("notify"), std::string("/"), std::string(200, '/'), std::string()}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_FALSE(notify_service_manager("READY=1")) << name;
  }
  setenv("NOTIFY_SOCKET", (folder_ + "/nobody").c_str(), 1);
  EXPECT_FALSE(notify_service_manager("READY=1"));
}

TEST_F(ServiceManager, SaysHowOftenItWantsASignOfLife) {
  listen(folder_ + "/notify");
  EXPECT_EQ(watchdog_interval(), std::nullopt);
  setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(watchdog_interval(), std::chrono::seconds(30));
  for (const char* bad : {"", "0", "-1", "many", "10s", "99999999999999999999"}) {
    setenv("WATCHDOG_USEC", bad, 1);
    EXPECT_EQ(watchdog_interval(), std::nullopt) << bad;
  }
}

TEST_F(ServiceManager, HearsOfAServiceThatIsAliveAgainAndAgain) {
  listen(folder_ + "/notify");
  Watchdog watchdog([] { return true; }, milliseconds(2));
  watchdog.begin();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(received(), "WATCHDOG=1");
}

TEST_F(ServiceManager, HearsNothingOfAServiceThatIsNot) {
  listen(folder_ + "/notify");
  std::atomic<int> asked{0};
  {
    Watchdog watchdog([&] { return ++asked < 0; }, milliseconds(2));
    watchdog.begin();
    while (asked < 3) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(received(nullptr, 0), "");
}

TEST_F(ServiceManager, IsNotToldWithoutBeingAsked) {
  std::atomic<int> asked{0};
  {
    Watchdog watchdog([&] { return ++asked > 0; }, std::nullopt);
    watchdog.begin();
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(ServiceManager, NothingIsAskedBeforeTheBeginning) {
  std::atomic<int> asked{0};
  {
    const Watchdog watchdog([&] { return ++asked > 0; }, milliseconds(1));
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(ServiceManager, NothingIsAskedAfterAStop) {
  listen(folder_ + "/notify");
  std::atomic<int> asked{0};
  Watchdog watchdog([&] { return ++asked > 0; }, milliseconds(2));
  watchdog.begin();
  EXPECT_EQ(received(), "WATCHDOG=1");
  watchdog.stop();
  while (!received(nullptr, 10).empty()) {
  }
  const int before = asked;
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(asked, before);
}

}  // namespace service_manager_test
}  // namespace batchfs
