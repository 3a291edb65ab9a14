#include "tools/cli/interruption.h"

#include <csignal>
#include <thread>

#include <unistd.h>

namespace batchfs {

Interruption::Interruption() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([state = state_, signals] {
    for (;;) {
      int signal = 0;
      sigwait(&signals, &signal);
      if (!state->guarded || state->requested.exchange(true)) ::_exit(128 + signal);
    }
  }).detach();  // runs as long as the process
}

}  // namespace batchfs
