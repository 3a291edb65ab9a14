#pragma once
// Redirects libfuse's messages from standard error to the log, and into error messages.

#include <string>

#include "engine/base/log.h"

namespace batchfs {

/// Receives libfuse's messages while it lives. At most one instance: libfuse has one receiver per
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
