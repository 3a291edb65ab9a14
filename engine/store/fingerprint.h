#pragma once
// Names texts by their contents: documents, queries, lists. SHA-256: fingerprints may be compared
// in place of the texts, also where these are hostile.

#include <cstdint>
#include <string>
#include <string_view>

namespace batchfs {

class Fingerprint {
 public:
  /// Texts have borders: "ab", "c" and "a", "bc" have different fingerprints.
  void add(std::string_view text);
  /// 32 hexadecimal digits; zeros for nothing.
  std::string text() const;

 private:
  std::string state_;  // 32 bytes; empty: of nothing
};

/// Returns the fingerprint of one text.
std::string fingerprint(std::string_view text);

/// The first 64 bits, never 0: the version of an object, as Store::state() returns it. The same in
/// every process.
std::uint64_t lasting_digest(std::string_view text);

}  // namespace batchfs
