#pragma once
// Common parts of the fuzz targets. A target takes bytes that a store, a server or a reader could
// have sent, and processes them like batchfs. It may end in an Error; anything else that is not the
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

/// Consumes the input piece by piece.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  /// Numbers are 0 at the end of the input.
  template <class Number>
  Number number() {
    Number value{};
    const auto part = bytes(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  /// Takes at most `size` bytes.
  std::span<const std::byte> bytes(std::size_t size) {
    const auto part = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(part.size());
    return part;
  }
  std::span<const std::byte> rest() { return bytes(rest_.size()); }
  /// Takes the text up to a NUL, and skips the NUL.
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

/// Runs `body`, which may end in an Error. Returns false if it did.
template <class Body>
bool attempt(Body&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    // "internal" means a fault of batchfs itself.
    if (error.code() == ErrorCode::internal) throw;
    return false;
  }
}

/// Reports a finding of our own.
inline void must(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace batchfs
