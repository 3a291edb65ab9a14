#pragma once
// What libfuse would write to standard error goes to the log, and into errors.

#include <string>

#include "engine/base/log.h"

namespace batchfs {

/// Takes libfuse's messages as long as it lives. One at a time: libfuse has one receiver in the
/// process.
class FuseLog {
 public:
  /// `log` outlives it.
  explicit FuseLog(Log& log);
  ~FuseLog();
  FuseLog(const FuseLog&) = delete;
  FuseLog& operator=(const FuseLog&) = delete;

  /// All errors so far, in one line; empty: none. Thread-safe.
  std::string errors() const;
};

}  // namespace batchfs
