#pragma once
// --task and --tasks: a share of the work, for schedulers that run many processes.

#include <CLI/CLI.hpp>

#include "tools/cli/command.h"

namespace batchfs {

struct TaskOptions {
  int task = 0, tasks = 1;
};

inline void add_task_options(CLI::App& app, TaskOptions& options) {
  const std::string group = "Tasks";
  app.add_option("--task", options.task, "do this share of the work, from 0")
      ->check(CLI::Range(0, 1'000'000).description(""))
      ->type_name("I")
      ->group(group);
  app.add_option("--tasks", options.tasks, "number of shares (default: 1)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N")
      ->group(group);
}

/// Throws UsageError.
inline void check_task(const TaskOptions& options) {
  if (options.task >= options.tasks)
    throw UsageError{"--task " + std::to_string(options.task) + " is not below --tasks " +
                     std::to_string(options.tasks)};
}

}  // namespace batchfs
