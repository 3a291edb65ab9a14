#pragma once
// Short messages between the processes of one mount, with descriptors: packets of a SOCK_SEQPACKET
// socket.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace batchfs {

inline constexpr std::size_t kMaxDescriptors = 2;

/// A peer that is gone needs to know nothing: says only whether it was sent.
bool send_packet(int socket, std::string_view text, const std::vector<int>& descriptors = {});

struct Packet {
  std::string text;
  std::vector<int> descriptors;  // the receiver's to close
};

/// Nothing when the peer is gone, or, unless it is to `wait`, when there is none now.
std::optional<Packet> receive_packet(int socket, bool wait = false);

}  // namespace batchfs
