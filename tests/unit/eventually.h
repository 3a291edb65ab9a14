#pragma once
// Waits for another thread or process.

#include <chrono>
#include <thread>

namespace batchfs {

/// Waits until `condition` holds; false after ten seconds.
template <class Condition>
bool eventually(Condition&& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace batchfs
