#pragma once
// The hand-over of a live session from one supervisor to another: `batchfs mount --replace`.
//
// A supervisor listens on a socket in the user's private directory
// (gpu/handoff/private_directory.h), named after the mount's device number, which no other mount
// has. Anybody could take an abstract name first. The socket of a killed supervisor is replaced by
// the next one of that number. Either side checks that the other is the same user. Messages, in
// this order:
//
//   old to new  the descriptors of the session and of its state, or why it cannot be replaced
//   new to old  `go`, when a daemon is ready to take over: the store is open, views are resolved
//   old to new  `gone`, when the old daemon has ended; then the old supervisor ends
//
// A successor that disconnects before it sends `go` changes nothing.

#include <string>

namespace batchfs {

inline constexpr char kGo[] = "go", kGone[] = "gone";

/// Listens for the one that is to follow. -1 when that cannot be: the mount then cannot be
/// replaced.
int listen_for_successor(const std::string& mountpoint);
/// Closes the listener, and removes its socket.
void stop_listening(int listener);
/// The next connection of the same user; -1 when there is none.
int accept_successor(int listener);

struct TakenSession {
  int session = -1, state = -1;
  int predecessor = -1;  // the connection
};

/// Asks the supervisor of a mount for its session. Throws with the reason when that fails.
TakenSession ask_for_session(const std::string& mountpoint);

}  // namespace batchfs
