#include "tools/service/packets.h"

#include <array>

#include <sys/socket.h>

#include "engine/base/descriptor_passing.h"

namespace batchfs {

bool send_packet(int socket, std::string_view text, const std::vector<int>& descriptors) {
  return send_passing(socket, std::as_bytes(std::span(text)), descriptors) >= 0;
}

std::optional<Packet> receive_packet(int socket, bool wait) {
  std::array<std::byte, 4096> text;
  PassedMessage message = receive_passed(socket, text, 2, wait ? 0 : MSG_DONTWAIT);
  if (message.size <= 0 || message.cut != PassedMessage::Cut::none) return std::nullopt;
  return Packet{
      {reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(message.size)},
      std::move(message.descriptors)};
}

}  // namespace batchfs
