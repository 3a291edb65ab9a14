#pragma once
// `--task I --tasks N --out DIR` and `--merge DIR` of commands whose result is merged from parts
// (engine/write/task_parts.h): any scheduler runs the tasks.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/base/json.h"
#include "engine/store/store.h"
#include "tools/tasks/task_options.h"

namespace batchfs {

struct TaskRunOptions {
  TaskOptions task;   // output: of --out
  std::string merge;  // of --merge
  bool is_task() const { return !task.output.empty(); }
  bool merges() const { return !merge.empty(); }
};

/// Adds them, and --json.
void add_task_run_options(CLI::App& app, TaskRunOptions& options);

/// An option that is required except for merging, by its name.
struct RequiredUnlessMerged {
  std::string name;
  const std::string& value;
};
/// Call it after the options were added: they are then optional, and check_task_run() checks.
void require_unless_merged(CLI::App& app, const std::vector<std::string>& names);

/// Throws UsageError.
void check_task_run(const TaskRunOptions& options,
                    const std::vector<RequiredUnlessMerged>& required);

/// Does the share of a task, unless its part exists, and reports it. `identity` names the run, with
/// the command as "command", and without the number of tasks. `stores`: the places that it reads.
void do_task(const TaskRunOptions& options, Json identity, const std::vector<std::string>& stores,
             const StoreConfig& config, Output& output,
             const std::function<std::string()>& compute);

/// Calls `use` with the result of each task, in order; returns their number. `identity`, if the
/// command line names the store, must equal that of the parts. Throws not_found for missing parts,
/// invalid_argument for those of another run or command, corrupt.
int merge_tasks(const TaskRunOptions& options, const std::string& command,
                std::optional<Json> identity, const StoreConfig& config,
                const std::function<void(std::string_view result)>& use);

}  // namespace batchfs
