#include "tools/tasks/task_run.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/printable.h"
#include "engine/store/output/apart.h"
#include "engine/store/output/output_store.h"
#include "engine/write/run_identity.h"
#include "engine/write/task_parts.h"
#include "tools/cli/command.h"

namespace batchfs {

void add_task_run_options(CLI::App& app, TaskRunOptions& options) {
  add_task_options(app, options.task);
  app.add_option("--out", options.task.output, "put the part of this share into this folder")
      ->type_name("DIR")
      ->group("Tasks");
  app.add_option("--merge", options.merge,
                 "put the parts of all shares together; STORE is not needed then")
      ->type_name("DIR")
      ->group("Tasks");
}

void require_unless_merged(CLI::App& app, const std::vector<std::string>& names) {
  for (const std::string& name : names) app.get_option(name)->required(false);
}

void check_task_run(const TaskRunOptions& options,
                    const std::vector<RequiredUnlessMerged>& required) {
  check_task(options.task);
  if (options.is_task() && options.merges())
    throw UsageError{"--out and --merge exclude each other: run the tasks, then merge their parts"};
  if (options.task.tasks > 1 && options.merges())
    throw UsageError{"--merge takes no --tasks: the parts know their number"};
  if (options.task.tasks > 1 && !options.is_task())
    throw UsageError{"--tasks needs --out, the folder for the parts"};
  bool any = false;
  for (const RequiredUnlessMerged& one : required) any = any || !one.value.empty();
  for (const RequiredUnlessMerged& one : required)
    if (one.value.empty() && (any || !options.merges()))
      throw UsageError{one.name + " is required"};
}

void do_task(const TaskRunOptions& options, Json identity, const std::vector<std::string>& stores,
             const StoreConfig& config, Output& output,
             const std::function<std::string()>& compute) {
  check_apart(stores, options.task.output);
  const std::shared_ptr<OutputStore> out = open_output(options.task.output, config);
  const int task = options.task.task, tasks = options.task.tasks;
  identity["tasks"] = tasks;
  TaskParts parts(*out, std::move(identity));
  parts.claim();
  const bool was_done = parts.has(task);
  if (!was_done) parts.put(task, compute());
  if (options.task.json)
    output.write(json_text({{"output", out->url()},
                            {"task", task},
                            {"tasks", tasks},
                            {"state", "task done"},
                            {"skipped", was_done}}) +
                 "\n");
  else
    output.write(
        fmt::format("task {} of {}: {}\n", task, tasks, was_done ? "done before" : "done"));
}

int merge_tasks(const TaskRunOptions& options, const std::string& command,
                std::optional<Json> identity, const StoreConfig& config,
                const std::function<void(std::string_view result)>& use) {
  const std::shared_ptr<OutputStore> out = open_output(options.merge, config);
  const Json found = read_identity(*out);
  const std::string of = found.is_object() ? found.value("command", "") : "";
  if (of != command)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("these are the parts of '{}', not of '{}'", printable(of), command),
                out->url());
  TaskParts parts(*out, found);
  if (identity) {
    (*identity)["tasks"] = parts.tasks();
    check_identity(*out, *identity, found);
  }
  parts.for_each([&](int, std::string_view result) { use(result); });
  return parts.tasks();
}

}  // namespace batchfs
