#pragma once
// Reports to a command whether the process that it started in the background is ready or failed.
// One report, whatever processes the started one is split into:
//
//   daemon --- leave_to_daemon() ---> supervisor --- enter_daemon() ---> takeover
//     |                                                                     |
//     +---- ready() or fail() -------> reported <--------- ready() ---------+
//
// Each arrow to the right in the first line follows a fork.
//
// - daemon: the command waits, and gets the report of this process. The process ends when the
//   command does: a user who stops waiting wants no mount later. The initial state.
// - supervisor: another process reports.
// - takeover: a later daemon of the supervisor, which continues an earlier one's work. The command
//   has its report already.
// - reported: the command has returned.
//
// In the foreground nobody waits: the report begins in state `reported`.

#include <memory>
#include <string>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "tools/service/reader_watch.h"

namespace batchfs {

/// Not thread-safe.
class StartReport {
 public:
  enum class State { daemon, supervisor, takeover, reported };

  /// For a process in the foreground.
  StartReport();
  /// `pipe`: the report is written to it. `null`: a descriptor of /dev/null, opened in advance.
  StartReport(Descriptor pipe, Descriptor null);
  ~StartReport();
  StartReport(const StartReport&) = delete;

  State state() const { return state_; }

  /// In the supervisor, after the fork of its first daemon: drops the report and leaves the
  /// terminal. Nothing later.
  void leave_to_daemon();
  /// In a daemon, after the last fork: starts a thread that ends the process with the command.
  void enter_daemon();
  /// The daemon serves: leaves the terminal, and the command returns.
  void ready();
  /// The daemon ends. The command throws `error`, unless it has its report.
  void fail(const Error& error);

  /// For the command: waits for the report that is written at the other end of `pipe`. Returns
  /// after ready(); throws the Error of fail(), and internal when the process ended without either.
  static void wait(Descriptor pipe);

 private:
  /// Away from the terminal, the session and the directory of the command.
  void detach();
  void write(const std::string& text);

  State state_;
  Descriptor pipe_, null_;
  std::unique_ptr<ReaderWatch> watch_;  // of the command: getting ready can take long
};

}  // namespace batchfs
