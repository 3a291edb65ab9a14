#pragma once
// Reading FlexBuffers, the self-describing kin of FlatBuffers: maps and texts of a buffer that may
// be hostile. Format: "FlexBuffers" of flatbuffers.dev. Offsets point backwards, so loops are
// impossible.

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/store/icechunk/flat_table.h"

namespace batchfs::icechunk {

/// A value. Views the buffer, which outlives it. Throws corrupt.
class FlexValue {
 public:
  static FlexValue root(Bytes buffer);

  bool is_map() const { return type_ == kMap; }
  /// nullopt for a value that is not text.
  std::optional<std::string_view> text() const;
  /// nullopt where the key is missing, or this is not a map.
  std::optional<FlexValue> find(std::string_view key) const;
  /// Empty where this is not a map.
  std::vector<std::pair<std::string_view, FlexValue>> members() const;

 private:
  static constexpr std::uint8_t kText = 5, kMap = 9;

  FlexValue(Bytes buffer, std::uint64_t position, std::uint8_t parent_width, std::uint8_t packed);
  static std::uint64_t number(Bytes buffer, std::uint64_t position, std::uint8_t width);
  static std::uint64_t back(Bytes buffer, std::uint64_t position, std::uint8_t width);
  static std::string_view key_at(Bytes buffer, std::uint64_t position);

  Bytes buffer_;
  std::uint64_t position_;  // of the value, or of its offset's target
  std::uint8_t width_;      // bytes of numbers there
  std::uint8_t type_;
};

}  // namespace batchfs::icechunk
