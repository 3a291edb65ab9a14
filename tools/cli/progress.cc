#include "tools/cli/progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace batchfs {

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::int64_t done, std::int64_t all) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || all <= 0 || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
  drawn_ = true;
  last_ = now;
  constexpr int kWidth = 30;
  const double part = static_cast<double>(done) / static_cast<double>(all);
  const auto full = static_cast<std::size_t>(part * kWidth);
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const std::string left =
      done > 0 && seconds > 1 ? fmt::format(", {:.0f} s left", seconds / part - seconds) : "";
  const std::string line =
      fmt::format("\r{} [{}{}] {:.0f} %{}\x1b[K", what_, std::string(full, '#'),
                  std::string(kWidth - full, ' '), 100 * part, left);
  std::fputs(line.c_str(), stderr);
}

}  // namespace batchfs
