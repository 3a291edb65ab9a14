#pragma once
// libfuse and fusermount3 write the reason of a failure to standard error. The capture lets batchfs
// report it in one line with its own message.

#include <string>

namespace batchfs {

/// Redirects standard error of the whole process while it lives. Log lines of other threads are
/// captured, too, and not shown.
class StderrCapture {
 public:
  StderrCapture();
  ~StderrCapture();
  StderrCapture(const StderrCapture&) = delete;
  /// The captured text so far, as one line; empty if there is none or it could not be kept.
  std::string text() const;

 private:
  int before_ = -1, kept_ = -1;
};

}  // namespace batchfs
