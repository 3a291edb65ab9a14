#pragma once
// Options of commands that write an output: the place, and the share of the work that one of many
// processes does (--task and --tasks), for schedulers.

#include <CLI/CLI.hpp>

#include "tools/cli/output.h"

namespace batchfs {

struct TaskOptions {
  std::string output;
  int task = 0, tasks = 1;
  bool json = false;
};

/// `-o,--output OUT`, also as `--out`, and required.
void add_output_folder_option(CLI::App& app, TaskOptions& options);
/// `--task I`, `--tasks N` and `--json`.
void add_task_options(CLI::App& app, TaskOptions& options);

/// Throws UsageError.
void check_task(const TaskOptions& options);

/// The end of a command that a signal ended: flushes the output and throws interrupted. `where` is
/// the place that it writes to.
[[noreturn]] void end_interrupted(Output& output, const std::string& where);

}  // namespace batchfs
