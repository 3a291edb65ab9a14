#pragma once
// libfuse and fusermount3 write the reason of a failure to standard error, which is reported in
// one line with the rest.

#include <string>

namespace batchfs {

/// Standard error of the whole process goes nowhere for as long as this lives. Threads that log
/// meanwhile are not heard.
class StderrCapture {
 public:
  StderrCapture();
  ~StderrCapture();
  StderrCapture(const StderrCapture&) = delete;
  /// What was written so far, as one line; empty where nothing was, or it could not be kept.
  std::string text() const;

 private:
  int before_ = -1, kept_ = -1;
};

}  // namespace batchfs
