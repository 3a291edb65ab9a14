#pragma once
// A small parent process of the daemon that serves a mount.
//
// It holds the descriptor of /dev/fuse, so that the kernel keeps the session when the daemon dies,
// and the session's state (see fs/session_state.h), and starts the daemon again, which takes over
// both. Programs that read notice a pause. A daemon that ends again and again is given up (see
// restarts.h): the mount ends, and readers get an error. Without a session that can be taken over
// (a kernel before 6.9, or as wished) that is so at once.
//
// It must not fail where the daemon does: it has one thread, never touches a store or the mount,
// and each daemon is a fork of the process as it was before anything was opened.
//
// A daemon that hangs (stopped, or in a deadlock) is as good as dead to readers. It tells its
// supervisor of every answer that the kernel gets from the mount to a question that it asks itself,
// as systemd's watchdog has it; the supervisor kills one that has been silent for too long (see
// silence.h), unless a debugger holds it.

#include <chrono>
#include <string>

#include "tools/service/start_report.h"

namespace batchfs {

struct SupervisorOptions {
  std::string mountpoint;
  bool restart = true;      // else only end the mount when the daemon has died
  bool replace = false;     // begin with the session of the supervisor that has the mount now
  bool foreground = false;  // say what happens on standard error, not to the system's log
  std::chrono::duration<double> hang_timeout{
      30};  // a daemon that is silent for so long is replaced; 0: never
};

/// What the daemon has from its supervisor.
struct Supervised {
  int state = -1;        // of a SessionState
  int session = -1;      // of /dev/fuse, to take over; -1: mount
  std::string before;    // what became of the daemon before this one
  int channel = -1;      // to the supervisor
  int predecessor = -1;  // the supervisor whose daemon serves until take_turn()

  /// Waits until no other daemon serves the session. Throws when the other one continues.
  void take_turn() const;
  void mounted(int session_descriptor) const;
  /// Requests are served. `lasting`: another daemon could take the session over.
  void ready(bool lasting) const;
  /// The kernel got an answer from the mount. From ready() on, the supervisor wants these at least
  /// every `SupervisorOptions::hang_timeout`. Does not block.
  void alive() const;
  /// No more signs of life: the daemon is ending.
  void ending() const;
  /// A reader got a batch or values from this daemon.
  void served() const;
  /// The mount has ended: the supervisor releases the session, and with it any reader that waits
  /// for an answer.
  void ended() const;
  /// Why this daemon gives up.
  void failed(const std::string& why) const;
};

/// Makes this process the supervisor and returns in a child of it, the daemon, once for each daemon
/// it starts. Moves `report` to the state of each process. The supervisor ends with the last
/// daemon's exit status. Precondition: this process has one thread.
Supervised supervise(const SupervisorOptions& options, StartReport& report);

}  // namespace batchfs
