#pragma once
// A terminal that a program has for itself: keys one by one, a screen that is drawn anew. Plain
// ANSI (ECMA-48).

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <termios.h>

namespace batchfs {

class Terminal {
 public:
  /// Standard input and output, which must be one. Throws UsageError when they are not.
  Terminal();
  /// As it was before.
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
  /// What comes first: a key, a change of size, the end (a signal that ends programs, or a terminal
  /// that is gone), something to read on `other` (none), or the end of `longest` (none).
  Input wait(std::chrono::milliseconds longest, int other = -1);

 private:
  void write(const std::string& text);

  termios before_{};
  int signals_ = -1;
};

}  // namespace batchfs
