#pragma once
// A progress bar on standard error, on a terminal only.

#include <chrono>
#include <cstdint>
#include <string>

namespace batchfs {

class Progress {
 public:
  explicit Progress(std::string what);
  /// Wipes the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws it, at most ten times a second.
  void show(std::int64_t done, std::int64_t all);

 private:
  const std::string what_;
  const bool terminal_;
  bool drawn_ = false;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace batchfs
