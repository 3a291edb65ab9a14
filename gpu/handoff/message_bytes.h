#pragma once
// Messages from and to bytes, on the server's side.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// Throws invalid_argument if there are too few bytes.
template <class Message>
Message read_as(std::span<const std::byte> bytes) {
  Message message;
  if (bytes.size() < sizeof message)
    throw Error(ErrorCode::invalid_argument, "a message is too short");
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

/// The same for messages without records.
template <class Message>
Message read_exactly(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Message))
    throw Error(ErrorCode::invalid_argument, "a message has the wrong length");
  return read_as<Message>(bytes);
}

inline void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const std::size_t before = bytes.size();
  bytes.resize(before + size);
  if (size > 0) std::memcpy(bytes.data() + before, data, size);
}

/// Makes the header of a message whose records are in place.
template <class Message>
void finish(std::vector<std::byte>& bytes, MessageType type, std::uint16_t version = kVersion) {
  const Header header{static_cast<std::uint32_t>(bytes.size()), type, version};
  std::memcpy(bytes.data(), &header, sizeof header);
}

template <class Message>
std::vector<std::byte> message_of(const Message& message, MessageType type) {
  std::vector<std::byte> bytes;
  append(bytes, &message, sizeof message);
  finish<Message>(bytes, type);
  return bytes;
}

/// `text`: JSON. Cut to the maximum length of a message.
inline std::vector<std::byte> refreshed_message(std::string_view text) {
  text = text.substr(0, kMaxMessage - sizeof(RefreshedMessage));
  RefreshedMessage message{};
  message.length = static_cast<std::uint32_t>(text.size());
  std::vector<std::byte> bytes;
  append(bytes, &message, sizeof message);
  append(bytes, text.data(), text.size());
  finish<RefreshedMessage>(bytes, MessageType::refreshed);
  return bytes;
}

/// Failed or Refused, with its texts.
template <class Message>
std::vector<std::byte> message_of(Message message, MessageType type, const Error& error) {
  // A reader shows it to its user.
  const std::string why = printable(error.why()).substr(0, 4096);
  const std::string where = printable(error.where()).substr(0, 4096);
  message.code = static_cast<std::uint32_t>(error.code());
  message.why_length = static_cast<std::uint32_t>(why.size());
  message.where_length = static_cast<std::uint32_t>(where.size());
  std::vector<std::byte> bytes;
  append(bytes, &message, sizeof message);
  append(bytes, why.data(), why.size());
  append(bytes, where.data(), where.size());
  finish<Message>(bytes, type);
  return bytes;
}

}  // namespace batchfs::handoff
