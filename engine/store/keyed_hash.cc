#include "engine/store/keyed_hash.h"

#include <bit>
#include <cstring>

namespace batchfs {

static_assert(std::endian::native == std::endian::little);

KeyedHash::KeyedHash(const Key& key)
    : v0_(key[0] ^ 0x736f6d6570736575),
      v1_(key[1] ^ 0x646f72616e646f6d ^ 0xee),
      v2_(key[0] ^ 0x6c7967656e657261),
      v3_(key[1] ^ 0x7465646279746573) {}

void KeyedHash::add(std::string_view bytes) {
  std::size_t next = 0;
  const auto add_byte = [&] {
    word_ |= std::uint64_t{static_cast<unsigned char>(bytes[next++])} << (8 * (length_ % 8));
    if (++length_ % 8 == 0) {
      compress(word_);
      word_ = 0;
    }
  };
  while (length_ % 8 != 0 && next < bytes.size()) add_byte();
  for (; bytes.size() - next >= 8; next += 8, length_ += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + next, sizeof word);
    compress(word);
  }
  while (next < bytes.size()) add_byte();
}

void KeyedHash::add(std::uint64_t number) {
  add(std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
}

KeyedHash::Value KeyedHash::value() {
  constexpr int kFinalRounds = 4;
  compress(word_ | length_ << 56);
  v2_ ^= 0xee;
  for (int i = 0; i < kFinalRounds; ++i) round();
  const std::uint64_t first = v0_ ^ v1_ ^ v2_ ^ v3_;
  v1_ ^= 0xdd;
  for (int i = 0; i < kFinalRounds; ++i) round();
  return {first, v0_ ^ v1_ ^ v2_ ^ v3_};
}

void KeyedHash::compress(std::uint64_t word) {
  v3_ ^= word;
  round();
  round();
  v0_ ^= word;
}

void KeyedHash::round() {
  v0_ += v1_;
  v2_ += v3_;
  v1_ = std::rotl(v1_, 13) ^ v0_;
  v3_ = std::rotl(v3_, 16) ^ v2_;
  v0_ = std::rotl(v0_, 32);
  v2_ += v1_;
  v0_ += v3_;
  v1_ = std::rotl(v1_, 17) ^ v2_;
  v3_ = std::rotl(v3_, 21) ^ v0_;
  v2_ = std::rotl(v2_, 32);
}

}  // namespace batchfs
