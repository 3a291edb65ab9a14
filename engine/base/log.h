#pragma once
// The log: one line per event, kept in a ring for `.batchfs/log`, and passed to stderr or a file.
// A thin face over spdlog so that no other file names it.

#include <memory>
#include <string>
#include <string_view>

namespace batchfs {

enum class LogLevel { debug, info, warning, error };

/// Holds the last lines and forwards them. Thread-safe.
class Log {
 public:
  /// `to_stderr`: also write to standard error (a mount in the foreground).
  explicit Log(bool to_stderr = false, LogLevel level = LogLevel::info);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(LogLevel level, std::string_view line);
  void debug(std::string_view line) { write(LogLevel::debug, line); }
  void info(std::string_view line) { write(LogLevel::info, line); }
  void warning(std::string_view line) { write(LogLevel::warning, line); }
  void error(std::string_view line) { write(LogLevel::error, line); }

  /// The kept lines, oldest first, each ending in a newline.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs
