#pragma once
// Source of a daemon's state: the directory of a mount, or the socket of `batchfs serve`.

#include <string>

#include <CLI/CLI.hpp>

#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "gpu/handoff/protocol.h"

namespace batchfs {

class StateSource {
 public:
  /// `place`: a mount point of batchfs, or a socket. Throws invalid_argument for anything else,
  /// not_found if nothing exists there.
  explicit StateSource(const std::string& place);

  /// The real path of the mount, or the socket.
  const std::string& path() const { return path_; }
  bool is_socket() const { return is_socket_; }

  /// Contents are arbitrary: the daemon may be another user's, and any program. Throws not_found if
  /// the daemon has ended, timed_out if a socket does not answer; a call on a mount that hangs does
  /// not return.
  std::string text(handoff::StateText what) const;
  /// The same, parsed. Throws corrupt as well.
  Json json(handoff::StateText what) const;
  /// For messages: "DIR/.batchfs/status.json", or the socket.
  std::string where(handoff::StateText what) const;

  /// After text() threw `error`: has the mount ended, or has the socket no listener any more?
  bool has_ended(const Error& error) const;

 private:
  std::string path_;
  bool is_socket_;
};

/// Adds the argument DIR of commands that watch a daemon. `place` must outlive the parsing.
void add_place(CLI::App& app, std::string& place);

}  // namespace batchfs
