#pragma once
// The commands of `batchfs`: one file each, listed in one table.
//
// A command is set up by adding its options to a CLI::App; the returned action is called when the
// user chose the command. It writes its result to an Output and throws Error when it fails; main
// prints that as the one line `batchfs: NAME failed: WHY (WHERE)`.

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/cli/output.h"

namespace batchfs {

using CommandAction = std::function<void(Output&)>;

struct Command {
  const char* name;
  const char* group;    // the heading it is listed under; empty: it is not listed
  const char* summary;  // one line, as `batchfs --help` shows it
  const char* example;  // at the end of its --help
  CommandAction (*setup)(CLI::App& app);
};

CommandAction setup_inspect(CLI::App& app);
CommandAction setup_show(CLI::App& app);
CommandAction setup_cat(CLI::App& app);
CommandAction setup_view(CLI::App& app);
CommandAction setup_plan(CLI::App& app);
CommandAction setup_statistics(CLI::App& app);
CommandAction setup_batch(CLI::App& app);
CommandAction setup_warm(CLI::App& app);
CommandAction setup_check(CLI::App& app);
CommandAction setup_rechunk(CLI::App& app);
CommandAction setup_export(CLI::App& app);
CommandAction setup_mount(CLI::App& app);
CommandAction setup_serve(CLI::App& app);
CommandAction setup_umount(CLI::App& app);
CommandAction setup_status(CLI::App& app);
CommandAction setup_refresh(CLI::App& app);
CommandAction setup_top(CLI::App& app);
CommandAction setup_report(CLI::App& app);
CommandAction setup_log(CLI::App& app);
CommandAction setup_doctor(CLI::App& app);
CommandAction setup_completion(CLI::App& app);

/// Wrong usage that only the command itself can see: exit code 2.
struct UsageError {
  std::string why;
};

}  // namespace batchfs
