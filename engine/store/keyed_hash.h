#pragma once
// SipHash-2-4 with a value of 128 bits (Aumasson and Bernstein, 2012): a hash with a secret key,
// made so that nobody who chooses the hashed bytes can choose two with the same value.
//
// Where a hash stands for the hashed bytes themselves, so that they are not compared, it must be
// this one, or SHA-256 (fingerprint.h) where the value is stored. XXH3 is for checksums and hash
// tables: under neighbouring seeds it has the same value for different short keys.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace batchfs {

class KeyedHash {
 public:
  using Key = std::array<std::uint64_t, 2>;
  using Value = std::array<std::uint64_t, 2>;

  explicit KeyedHash(const Key& key);
  void add(std::string_view bytes);
  /// A number of 8 bytes, little-endian: for instance the length of the text after it, where
  /// several texts are hashed one after the other.
  void add(std::uint64_t number);
  /// The hash of everything added. Call once.
  Value value();

 private:
  void compress(std::uint64_t word);
  void round();

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t word_ = 0;  // bytes that do not fill a word yet
  std::uint64_t length_ = 0;
};

}  // namespace batchfs
