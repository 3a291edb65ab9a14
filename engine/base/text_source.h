#pragma once
// A text that is made piece by piece.

#include <string>

namespace batchfs {

class TextSource {
 public:
  virtual ~TextSource() = default;
  /// The next piece, of some ten kilobytes; empty at the end. Throws Error.
  virtual std::string next() = 0;
};

}  // namespace batchfs
