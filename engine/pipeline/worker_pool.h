#pragma once
// The workers of the process: threads of oneTBB that sleep between uses and never end.
//
// oneTBB's scheduler is not used: its idle workers spin and yield before they sleep. Each worker
// has one task of oneTBB, its ticket, for ever: it takes jobs from the pool and sleeps in it.
//
// A worker that the system refuses is an error of run(). oneTBB throws where pthread_create()
// fails, but in the thread that needs the worker, which may be one of its own and ends the process
// then. So tickets are enqueued one at a time, each in an arena of its own with room for one
// thread: the exception is the caller's, and only that arena is unusable.
//
// Threads of oneTBB do not survive fork(): a forked process has no pool.

#include <functional>

namespace batchfs {

class WorkerPool {
 public:
  /// The pool of this process, which is never destroyed. Null in a process that was forked from
  /// one that has a pool.
  static WorkerPool* of_process();

  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Runs `work` on a worker without work, or on a new one, and then `ended`, from when on the
  /// worker is free. False, without a call of either, where the system refuses a thread. Neither
  /// may throw. Thread-safe.
  bool run(std::function<void()> work, std::function<void()> ended);

 private:
  struct State;
  struct Ticket;

  WorkerPool();
  ~WorkerPool() = default;

  State* const state_;  // never destroyed; keeps oneTBB's headers out of this one
};

}  // namespace batchfs
