// batchfs log: the last lines of a daemon's log, or another level for those to come.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <unistd.h>

#include "engine/base/json.h"
#include "tools/cli/command.h"
#include "tools/cli/store_options.h"
#include "tools/cli/text.h"
#include "tools/service/log_level_signal.h"
#include "tools/service/state_source.h"

namespace batchfs {

namespace {

struct LogOptions {
  std::string place, level;
};

/// Would this process survive the signal? One that blocks or handles it does; any other would end.
/// Source: proc(5), SigBlk and SigCgt of /proc/PID/status; the masks begin with signal 1.
bool takes_signal(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  bool is_batchfs = false, takes = false;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Name:")) is_batchfs = line.find("batchfs") != std::string::npos;
    if (line.starts_with("SigBlk:") || line.starts_with("SigCgt:"))
      takes = takes || (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return is_batchfs && takes;
}

pid_t server_of(const StateSource& daemon) {
  const Json status = daemon.json(handoff::StateText::status);
  const auto pid = status.find("pid");
  if (pid == status.end() || !pid->is_number_integer())
    throw Error(ErrorCode::corrupt, "tells no process", daemon.where(handoff::StateText::status));
  return pid->get<pid_t>();
}

void set_level(const StateSource& daemon, LogLevel level) {
  const pid_t pid = server_of(daemon);
  if (pid <= 0 || !takes_signal(pid, kLogLevelSignal))
    throw Error(ErrorCode::not_supported,
                "the daemon cannot be reached from here: it runs in another container, or is of "
                "another version",
                "process " + std::to_string(pid));
  sigval value{};
  value.sival_int = static_cast<int>(level);
  if (::sigqueue(pid, kLogLevelSignal, value) != 0) {
    throw Error(errno == EPERM ? ErrorCode::access_denied : ErrorCode::io,
                errno == EPERM ? "it belongs to another user; run this as that user or as root"
                               : std::strerror(errno),
                "process " + std::to_string(pid));
  }
}

void show(const LogOptions& options, Output& output) {
  const StateSource daemon(options.place);
  if (!options.level.empty()) return set_level(daemon, *parse_log_level(options.level));
  // The mount may be another user's, and its daemon any program.
  output.write(printable(daemon.text(handoff::StateText::log), LineBreaks::keep));
}

}  // namespace

CommandAction setup_log(CLI::App& app) {
  const auto options = std::make_shared<LogOptions>();
  add_place(app, options->place);
  app.add_option("--level", options->level,
                 "log lines of this level and above from now on: debug, info, warning, error")
      ->type_name("LEVEL")
      ->check([](const std::string& text) {
        return parse_log_level(text) ? ""
                                     : "it is debug, info, warning or error, not '" + text + "'";
      });
  return [options](Output& output) { show(*options, output); };
}

}  // namespace batchfs
