#include "engine/store/fingerprint.h"

#include <algorithm>
#include <cstring>

#include "engine/store/cloud/signing/crypto.h"

namespace batchfs {

namespace {

constexpr std::size_t kBytes = 16;  // finding two texts takes 2^64 tries

}  // namespace

void Fingerprint::add(std::string_view text) { state_ = sha256(state_ + sha256(text)); }

std::string Fingerprint::text() const {
  return state_.empty() ? std::string(2 * kBytes, '0') : hex(state_.substr(0, kBytes));
}

std::string fingerprint(std::string_view text) {
  Fingerprint one;
  one.add(text);
  return one.text();
}

std::uint64_t lasting_digest(std::string_view text) {
  const std::string bytes = sha256(text);
  std::uint64_t first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  return std::max<std::uint64_t>(1, first);
}

}  // namespace batchfs
