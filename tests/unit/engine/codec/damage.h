#pragma once
// Common parts of the codec tests: vectors written as hexadecimal digits, and ways to damage them.
//
// The vectors were written by numcodecs and zarr-python; the comment above each is the expression
// for it, with the names defined at the head of the file.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>

#include "engine/codec/codec.h"

namespace batchfs {

using Bytes = std::vector<std::byte>;

inline Bytes hex(std::string_view digits) {
  auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(value(digits[i]) * 16 + value(digits[i + 1])));
  return bytes;
}

/// The bytes [begin, end).
inline Bytes slice(const Bytes& bytes, std::size_t begin, std::size_t end) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(begin),
          bytes.begin() + static_cast<std::ptrdiff_t>(end)};
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

/// Makes a codec like an array's metadata would. Sets `layout` to the next codec's.
inline std::unique_ptr<Codec> make_codec(std::string_view name, std::string_view configuration,
                                         ChunkLayout& layout) {
  const Json json = parse_json(configuration, "test");
  return find_codec(name)(JsonRef(json, std::string(name)), layout);
}

inline std::unique_ptr<Codec> make_codec(std::string_view name,
                                         std::string_view configuration = "{}",
                                         DataType type = make_type(Kind::unsigned_int, 1)) {
  ChunkLayout layout{{1}, std::move(type), {}};
  return make_codec(name, configuration, layout);
}

/// The message of the Error that `body` throws.
template <class Body>
std::string failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline std::string refusal(std::string_view name, std::string_view configuration,
                           DataType type = make_type(Kind::unsigned_int, 1)) {
  return failure([&] { make_codec(name, configuration, std::move(type)); });
}

/// Memory before an inaccessible page: an access past the end stops the test, also one by a library
/// without a sanitizer.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t capacity)
      : capacity_((capacity + kPage - 1) / kPage * kPage),
        memory_(static_cast<std::byte*>(::mmap(nullptr, capacity_ + kPage, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_EQ(::mprotect(memory_ + capacity_, kPage, PROT_NONE), 0);
  }
  ~GuardedMemory() { ::munmap(memory_, capacity_ + kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// The last `size` bytes.
  std::span<std::byte> last(std::size_t size) const { return {memory_ + capacity_ - size, size}; }
  std::span<const std::byte> copy(std::span<const std::byte> bytes) const {
    const std::span<std::byte> to = last(bytes.size());
    std::copy(bytes.begin(), bytes.end(), to.begin());
    return to;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  const std::size_t capacity_;
  std::byte* const memory_;
};

constexpr std::size_t kMaxVector = 1 << 18;

inline Bytes decode(const Codec& codec, std::span<const std::byte> encoded, std::size_t room) {
  static const GuardedMemory in(kMaxVector), out(kMaxVector);
  const std::span<std::byte> to = out.last(room);
  const std::size_t got = codec.decode(in.copy(encoded), to);
  EXPECT_LE(got, room);
  return {to.begin(), to.begin() + static_cast<std::ptrdiff_t>(std::min(got, room))};
}

inline Bytes decode_range(const Codec& codec, std::span<const std::byte> encoded,
                          std::uint64_t decoded_size, std::uint64_t offset, std::size_t length) {
  static const GuardedMemory in(kMaxVector), out(kMaxVector);
  const std::span<std::byte> to = out.last(length);
  codec.decode_range(in.copy(encoded), decoded_size, offset, to);
  return {to.begin(), to.end()};
}

/// Does decoding end in an error? Otherwise it must return at most `room` bytes.
inline bool fails(const Codec& codec, std::span<const std::byte> encoded, std::size_t room) {
  try {
    decode(codec, encoded, room);
    return false;
  } catch (const Error& error) {
    EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::corrupt, ErrorCode::not_supported))
        << error.what();
    return true;
  }
}

/// Cuts the data at every byte: each must fail, return fewer bytes than the whole (which the chain
/// refuses), or, if only an end mark is lost, the same bytes.
inline void expect_truncation_is_noticed(const Codec& codec, const Bytes& encoded,
                                         const Bytes& expected) {
  for (std::size_t n = 0; n < encoded.size(); ++n) {
    const std::span<const std::byte> part = std::span(encoded).first(n);
    if (fails(codec, part, expected.size())) continue;
    const Bytes got = decode(codec, part, expected.size());
    EXPECT_TRUE(got.size() < expected.size() || got == expected) << n << " bytes";
  }
}

/// Changes every byte, in each bit and in all. Returns how many of the changes decode to other
/// values of the same size: changes that a format without a checksum cannot detect.
inline int unseen_changes(const Codec& codec, const Bytes& encoded, const Bytes& expected) {
  int unseen = 0;
  Bytes damaged = encoded;
  for (std::byte& byte : damaged) {
    const std::byte good = byte;
    for (int mask : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      byte = good ^ static_cast<std::byte>(mask);
      if (fails(codec, damaged, expected.size())) continue;
      const Bytes got = decode(codec, damaged, expected.size());
      unseen += got.size() == expected.size() && got != expected;
    }
    byte = good;
  }
  return unseen;
}

/// Checks a valid vector: it decodes to `expected`, needs all of its room, and damage does no harm.
/// Returns the number of undetected changes.
inline int expect_decodes(const Codec& codec, const Bytes& encoded, const Bytes& expected) {
  EXPECT_EQ(decode(codec, encoded, expected.size()), expected);
  EXPECT_EQ(decode(codec, encoded, expected.size() + 100), expected);
  EXPECT_TRUE(expected.empty() || fails(codec, encoded, expected.size() - 1));
  expect_truncation_is_noticed(codec, encoded, expected);
  return unseen_changes(codec, encoded, expected);
}

}  // namespace batchfs
