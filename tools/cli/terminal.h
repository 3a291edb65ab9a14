#pragma once
// Exclusive use of a terminal: unbuffered keys, a screen that is redrawn. Plain ANSI (ECMA-48).

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <termios.h>

namespace batchfs {

class Terminal {
 public:
  /// Uses standard input and output, which must be a terminal. Throws UsageError otherwise.
  Terminal();
  /// Restores the terminal's settings.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    std::size_t columns, rows;
  };
  Size size() const;
  void draw(const std::vector<std::string>& lines);

  enum class Event { key, resized, ended, none };
  struct Input {
    Event event = Event::none;
    char key = 0;
  };
  /// Waits for the first of: a key, a change of size, the end (a signal that ends programs, or a
  /// terminal that is gone), input on `other` (none), or the end of `longest` (none).
  Input wait(std::chrono::milliseconds longest, int other = -1);

 private:
  void write(const std::string& text);

  termios before_{};
  int signals_ = -1;
};

}  // namespace batchfs
