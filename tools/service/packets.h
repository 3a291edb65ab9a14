#pragma once
// Short messages between the processes of one mount, with descriptors: packets of a SOCK_SEQPACKET
// socket.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/descriptor.h"

namespace batchfs {

/// Returns whether the packet was sent; an error is not reported, as the peer is gone.
bool send_packet(int socket, std::string_view text, const std::vector<int>& descriptors = {});

struct Packet {
  std::string text;
  std::vector<Descriptor> descriptors;
};

/// Nullopt if the peer is gone, sent more than 4096 bytes or two descriptors, or, without `wait`,
/// if there is no packet now.
std::optional<Packet> receive_packet(int socket, bool wait = false);

}  // namespace batchfs
