#pragma once
// Standard output of a command: everything is written, or the failure is reported.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace batchfs {

/// Thrown when the output has no reader any more (`batchfs cat ...
/// head`): the command ends quietly.
struct ReaderWentAway {};

/// Buffers, and throws Error{io} when a write fails. Nothing is lost silently: finish() must be
/// called to flush the buffer.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Throws UsageError if the output is a terminal, which wants text. `instead`: advice on what to
  /// type.
  void expect_binary(const std::string& instead) const;

  int fd() const { return fd_; }

  void write(std::string_view text);
  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  void write_through(std::string_view bytes);

  int fd_;
  std::string buffer_;
};

}  // namespace batchfs
