#pragma once
// Reading a JSON text of gigabytes from its beginning to its end: strings, numbers, and values that
// are skipped or kept as they are written. No document is built.
//
// Source: RFC 8259. Lenient in skipped values: brackets and strings must end, and the parser of the
// value checks the text between them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace batchfs::references {

/// Not thread-safe. Every member throws invalid_argument for invalid JSON, naming the byte. A copy
/// reads the same text again.
class JsonScanner {
 public:
  /// Views `text`. `origin` is where the text begins in the file, for messages.
  explicit JsonScanner(std::string_view text, std::size_t origin = 0)
      : text_(text), origin_(origin) {}

  /// The next character but blanks, which stays; NUL at the end.
  char peek();
  /// Takes the next character if it is `c`.
  bool take(char c);
  void expect(char c);
  bool at_end() { return peek() == '\0' && at_ >= text_.size(); }

  /// A string. Throws not_supported for half of a pair of surrogates, which JSON allows and UTF-8
  /// does not. The view is valid until the next call with `scratch`, and as long as the text.
  std::string_view string(std::string& scratch);
  /// The end of the string that begins here, without decoding it.
  void skip_string();
  /// The text from byte `begin` of position() to here.
  std::string_view since(std::size_t begin) const {
    return text_.substr(begin - origin_, at_ - (begin - origin_));
  }
  /// A number without sign, fraction and exponent.
  std::uint64_t count();
  /// Any value, as it is written.
  std::string_view value();
  /// Where the next character lies in the file.
  std::size_t position() const { return origin_ + at_; }

  /// An error with its place: "not valid JSON at byte 17: ...".
  Error mistake(const std::string& what) const;

 private:
  void skip_word();
  std::uint32_t hex4();

  std::string_view text_;
  std::size_t origin_;
  std::size_t at_ = 0;
};

}  // namespace batchfs::references
