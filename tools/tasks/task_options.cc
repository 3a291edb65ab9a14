#include "tools/tasks/task_options.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "tools/cli/command.h"

namespace batchfs {

void add_output_folder_option(CLI::App& app, TaskOptions& options) {
  app.add_option("-o,--output,--out", options.output, "write to this place: a new folder")
      ->required()
      ->type_name("OUT");
}

void add_task_options(CLI::App& app, TaskOptions& options) {
  const std::string group = "Tasks";
  app.add_option("--task", options.task, "do this share of the work, from 0")
      ->check(CLI::Range(0, 1'000'000).description(""))
      ->type_name("I")
      ->group(group);
  app.add_option("--tasks", options.tasks, "number of shares (default: 1)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N")
      ->group(group);
  app.add_flag("--json", options.json, "write JSON, for programs");
}

void check_task(const TaskOptions& options) {
  if (options.task >= options.tasks)
    throw UsageError{fmt::format("--task {} is not below --tasks {}", options.task, options.tasks)};
}

void end_interrupted(Output& output, const std::string& where) {
  output.finish();
  throw Error(ErrorCode::interrupted, "run the same command again: it continues", where);
}

}  // namespace batchfs
