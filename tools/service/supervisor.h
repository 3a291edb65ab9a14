#pragma once
// A small parent process of the daemon that serves a mount.
//
// It holds the descriptor of /dev/fuse, so that the kernel keeps the session when the daemon dies,
// and the session's state (see fs/session_state.h), and starts the daemon again, which takes over
// both. Readers notice a pause. A daemon that ends again and again is given up (see restarts.h):
// the mount ends, and readers get an error. If the session cannot be taken over (a kernel before
// 6.9, or by option), that happens at once.
//
// It must not fail where the daemon does: it has one thread, never touches a store or the mount,
// and each daemon is a fork of the process as it was before anything was opened.
//
// To readers, a daemon that hangs (stopped, or in a deadlock) is as good as dead. It asks the mount
// questions of its own and reports to its supervisor every answer that the kernel gets, like
// systemd's watchdog; the supervisor kills one that has been silent for too long (see silence.h),
// unless a debugger holds it.

#include <chrono>
#include <string>

#include "tools/service/start_report.h"

namespace batchfs {

struct SupervisorOptions {
  std::string mountpoint;
  bool restart = true;      // else only end the mount when the daemon has died
  bool replace = false;     // begin with the session of the supervisor that has the mount now
  bool foreground = false;  // report events on standard error, not to the system's log
  std::chrono::duration<double> hang_timeout{
      30};  // silence after which a daemon is replaced; 0: never
};

/// State that the supervisor passes to the daemon.
struct Supervised {
  int state = -1;        // of a SessionState
  int session = -1;      // of /dev/fuse, to take over; -1: mount
  std::string before;    // how the previous daemon ended
  int channel = -1;      // to the supervisor
  int predecessor = -1;  // the supervisor whose daemon serves until take_turn()

  /// Waits until no other daemon serves the session. Throws when the other one continues.
  void take_turn() const;
  void mounted(int session_descriptor) const;
  /// Reports that requests are served. `lasting`: another daemon could take the session over.
  void ready(bool lasting) const;
  /// Reports that the kernel got an answer from the mount. From ready() on, the supervisor expects
  /// these at least every `SupervisorOptions::hang_timeout`. Does not block.
  void alive() const;
  /// Announces the end of the signs of life: the daemon is ending.
  void ending() const;
  /// Reports that a reader got a batch or values from this daemon.
  void served() const;
  /// Reports that the mount has ended: the supervisor releases the session, and with it any reader
  /// that waits for an answer.
  void ended() const;
  /// Reports why this daemon gives up.
  void failed(const std::string& why) const;
};

/// Makes this process the supervisor and returns in a child of it, the daemon, once for each daemon
/// it starts. Moves `report` to the state of each process. The supervisor ends with the last
/// daemon's exit status. Precondition: this process has one thread.
Supervised supervise(const SupervisorOptions& options, StartReport& report);

}  // namespace batchfs
