#pragma once
// One thread for a library that must be called by one thread only.
//
// A call that ends in an exception thrown through the library may leave locks of the library
// locked. They are recursive, and belong to the thread that locked them: it alone is never stopped
// by them.

#include <functional>
#include <memory>

namespace batchfs {

/// Thread-safe.
class OwnThread {
 public:
  /// Runs the task in the thread, after those of other callers, and rethrows what it throws. The
  /// thread starts with the first task, and again after a fork. Throws no_memory where it cannot.
  void run(const std::function<void()>& task);

 private:
  class Worker;
  std::shared_ptr<Worker> worker();

  std::shared_ptr<Worker> worker_;
};

}  // namespace batchfs
