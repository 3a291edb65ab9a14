#include "engine/store/icechunk/flex_value.h"

#include <algorithm>

namespace batchfs::icechunk {

namespace {

/// Members of one map.
constexpr std::uint64_t kMaxMembers = 100'000;

[[noreturn]] void damaged() {
  throw Error(ErrorCode::corrupt, "damaged FlexBuffers data in the repository's configuration");
}

}  // namespace

std::uint64_t FlexValue::number(Bytes buffer, std::uint64_t position, std::uint8_t width) {
  if (position > buffer.size() || buffer.size() - position < width) damaged();
  std::uint64_t value = 0;
  std::memcpy(&value, buffer.data() + position, width);
  return value;
}

/// Where the offset at `position` leads to.
std::uint64_t FlexValue::back(Bytes buffer, std::uint64_t position, std::uint8_t width) {
  const std::uint64_t offset = number(buffer, position, width);
  if (offset == 0 || offset > position) damaged();
  return position - offset;
}

FlexValue::FlexValue(Bytes buffer, std::uint64_t position, std::uint8_t parent_width,
                     std::uint8_t packed)
    : buffer_(buffer),
      position_(position),
      width_(static_cast<std::uint8_t>(1u << (packed & 3))),
      type_(packed >> 2) {
  if (type_ == kText || type_ == kMap) position_ = back(buffer, position, parent_width);
}

FlexValue FlexValue::root(Bytes buffer) {
  if (buffer.size() < 3) damaged();
  const auto width = std::to_integer<std::uint8_t>(buffer[buffer.size() - 1]);
  const auto packed = std::to_integer<std::uint8_t>(buffer[buffer.size() - 2]);
  if ((width != 1 && width != 2 && width != 4 && width != 8) || buffer.size() < 2u + width)
    damaged();
  return {buffer, buffer.size() - 2 - width, width, packed};
}

std::optional<std::string_view> FlexValue::text() const {
  if (type_ != kText) return std::nullopt;
  if (position_ < width_) damaged();
  const std::uint64_t size = number(buffer_, position_ - width_, width_);
  if (size > buffer_.size() - position_) damaged();
  return std::string_view(reinterpret_cast<const char*>(buffer_.data()) + position_, size);
}

std::string_view FlexValue::key_at(Bytes buffer, std::uint64_t position) {
  const std::string_view rest(reinterpret_cast<const char*>(buffer.data()) + position,
                              buffer.size() - position);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) damaged();
  return rest.substr(0, end);
}

std::vector<std::pair<std::string_view, FlexValue>> FlexValue::members() const {
  std::vector<std::pair<std::string_view, FlexValue>> found;
  if (!is_map()) return found;
  // Before the values: their number, the width of the keys, the offset to the keys.
  if (position_ < 3u * width_) damaged();
  const std::uint64_t count = number(buffer_, position_ - width_, width_);
  const std::uint64_t key_width = number(buffer_, position_ - 2u * width_, width_);
  const std::uint64_t keys = back(buffer_, position_ - 3u * width_, width_);
  if (count > kMaxMembers || (key_width != 1 && key_width != 2 && key_width != 4 && key_width != 8))
    damaged();
  const auto narrow = static_cast<std::uint8_t>(key_width);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t key = back(buffer_, keys + i * narrow, narrow);
    const auto packed =
        static_cast<std::uint8_t>(number(buffer_, position_ + count * width_ + i, 1));
    found.emplace_back(key_at(buffer_, key),
                       FlexValue(buffer_, position_ + i * width_, width_, packed));
  }
  return found;
}

std::optional<FlexValue> FlexValue::find(std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return value;
  return std::nullopt;
}

}  // namespace batchfs::icechunk
