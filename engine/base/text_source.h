#pragma once
// A text that is made piece by piece.

#include <memory>
#include <string>

namespace batchfs {

class TextSource {
 public:
  virtual ~TextSource() = default;
  /// The next piece, of some ten kilobytes; empty at the end. Throws Error.
  virtual std::string next() = 0;
  /// Another source of the remaining text, in little memory; null where that is not possible.
  virtual std::unique_ptr<TextSource> fork() const { return nullptr; }
};

}  // namespace batchfs
