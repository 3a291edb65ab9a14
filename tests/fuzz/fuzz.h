#pragma once
// What the fuzz targets share. A target takes bytes that a store, a server or a reader could have
// sent, and does with them what batchfs does. It may end in an Error; anything else that is not the
// right answer is a finding: a crash, a sanitizer's report, another exception, memory or time
// without bound, or two ways to the same values that differ.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace batchfs {

/// Input, taken piece by piece.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  /// Numbers are 0 when nothing is left.
  template <class Number>
  Number number() {
    Number value{};
    const auto part = bytes(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  /// At most `size`.
  std::span<const std::byte> bytes(std::size_t size) {
    const auto part = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(part.size());
    return part;
  }
  std::span<const std::byte> rest() { return bytes(rest_.size()); }
  /// Up to a NUL, which is passed over.
  std::string text() {
    const std::string_view all(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    const std::string part(all.substr(0, all.find('\0')));
    bytes(part.size() + 1);
    return part;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

/// Runs what may end in an Error. False when it did.
template <class Body>
bool attempt(Body&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    // "internal" is what batchfs says of itself when something is wrong with it.
    if (error.code() == ErrorCode::internal) throw;
    return false;
  }
}

/// A finding of our own.
inline void must(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace batchfs
