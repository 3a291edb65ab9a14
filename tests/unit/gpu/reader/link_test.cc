#include "gpu/reader/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/descriptor.h"

namespace batchfs::reader {
namespace link_test {

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    server_ = Descriptor(ends[0]);
    link_ = std::make_unique<Link>(ends[1]);
  }
  /// The next message to the server.
  std::vector<std::byte> received() const {
    std::vector<std::byte> bytes(1 << 16);
    const ssize_t size = ::recv(server_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return bytes;
  }

  std::unique_ptr<Link> link_;
  Descriptor server_;  // ends first: the link waits for that
};

TEST_F(LinkTest, ALeaseIsReturnedAtOnce) {
  link_->release(77);
  const auto bytes = received();
  const auto message = read_as<handoff::ReleaseMessage>(bytes);
  EXPECT_EQ(message.header.type, handoff::MessageType::release);
  EXPECT_EQ(message.header.length, bytes.size());
  ASSERT_EQ(message.count, 1u);
  std::uint64_t lease = 0;
  std::memcpy(&lease, bytes.data() + sizeof message, sizeof lease);
  EXPECT_EQ(lease, 77u);
}

TEST_F(LinkTest, AMessageArrivesWhole) {
  const auto message = make<handoff::EndMessage>(handoff::MessageType::end);
  link_->send(&message, sizeof message);
  const auto bytes = received();
  ASSERT_EQ(bytes.size(), sizeof message);
  EXPECT_EQ(read_as<handoff::EndMessage>(bytes).header.type, handoff::MessageType::end);
}

TEST_F(LinkTest, AnEndedConnectionIsLost) {
  server_ = Descriptor();
  const auto message = make<handoff::EndMessage>(handoff::MessageType::end);
  EXPECT_THROW(link_->send(&message, sizeof message), Lost);
  link_->release(1);
}

TEST_F(LinkTest, AShortMessageIsLost) {
  EXPECT_THROW(read_as<handoff::EndMessage>(std::vector<std::byte>(3)), Lost);
}

}  // namespace link_test
}  // namespace batchfs::reader
