#pragma once
// Threads inherit which signals are blocked: signals are for the thread that serves.

#include <csignal>
#include <initializer_list>

namespace batchfs {

/// While it lives, this thread takes no signal but those in `taken`: a thread that it starts never
/// does.
class BlockedSignals {
 public:
  explicit BlockedSignals(std::initializer_list<int> taken = {}) {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : taken) sigdelset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace batchfs
