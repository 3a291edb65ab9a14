#pragma once
// The log: one line per event, kept in a ring for `.batchfs/log`, and passed to stderr.
//
// A line is "2026-11-21T14:02:11.034 warning MESSAGE". Where stderr is the system's journal, which
// keeps the time itself, it is "<4>MESSAGE" (sd-daemon(3)). A thin face over spdlog so that no
// other file names it.

#include <memory>
#include <optional>
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

  /// Drops later lines below this level.
  void set_level(LogLevel level);
  LogLevel level() const;

  /// The kept lines, oldest first, each ending in a newline.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "debug", "info", "warning" or "error".
std::string_view log_level_name(LogLevel level);
std::optional<LogLevel> parse_log_level(std::string_view name);

/// Is this file descriptor the journal according to `journal_stream`, the variable JOURNAL_STREAM?
/// systemd.exec(5).
bool is_journal(int fd, const char* journal_stream);

}  // namespace batchfs
