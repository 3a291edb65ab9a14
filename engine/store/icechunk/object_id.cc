#include "engine/store/icechunk/object_id.h"

#include <cstdint>

namespace batchfs::icechunk {

namespace {

constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

}  // namespace

std::string base32(std::span<const std::byte> bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const std::byte byte : bytes) {
    bits = (bits << 8 | std::to_integer<std::uint32_t>(byte)) & 0xffff;
    count += 8;
    for (; count >= 5; count -= 5) text += kAlphabet[bits >> (count - 5) & 31];
  }
  if (count > 0) text += kAlphabet[bits << (5 - count) & 31];
  return text;
}

std::optional<ObjectId> parse_object_id(std::string_view text) {
  ObjectId id{};
  if (text.size() != (id.size() * 8 + 4) / 5) return std::nullopt;
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t done = 0;
  for (const char c : text) {
    const char upper = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    const std::size_t digit = kAlphabet.find(upper);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 5 | static_cast<std::uint32_t>(digit)) & 0xffff;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    id[done++] = static_cast<std::byte>(bits >> count & 0xff);
  }
  if ((bits & ((1u << count) - 1)) != 0) return std::nullopt;
  return id;
}

}  // namespace batchfs::icechunk
