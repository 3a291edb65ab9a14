// batchfs statistics: means, deviations and extremes of a view's selection, for its "normalize".

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/log.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/pipeline/engine.h"
#include "engine/scan/source_versions.h"
#include "engine/scan/statistics.h"
#include "engine/store/fingerprint.h"
#include "engine/store/output/output_store.h"
#include "engine/view/describe/resolved.h"
#include "engine/write/run_identity.h"
#include "tools/cli/command.h"
#include "tools/cli/places.h"
#include "tools/cli/progress.h"
#include "tools/cli/text.h"
#include "tools/cli/view_memory.h"
#include "tools/cli/view_options.h"
#include "tools/cli/whole_file.h"
#include "tools/page/number_text.h"
#include "tools/tasks/task_run.h"

namespace batchfs {

namespace {

struct StatisticsCommandOptions {
  StoreOptions store;
  std::optional<std::string> part;
  std::string view, file, tendency;
  std::vector<std::string> per;
  bool quantiles = false;
  TaskRunOptions run;
};

/// The origin recorded in the result.
Json origin(const DecodedViews& opened, const View& view) {
  const Store& store = opened.is_mixture && !view.variables().empty()
                           ? view.variables().front()->array->store()
                           : *opened.opened.store;
  const bool is_first = &store == opened.opened.store.get();
  return {{"store", store.url()},
          {"snapshot", is_first ? opened.opened.snapshot_id() : std::string()},
          {"view", view.name()}};
}

Json document(Json origin, const std::vector<VariableStatistics>& statistics,
              const Json& coordinates) {
  origin["std"] = "of the population";
  origin["tendency"] = "differences between neighbouring positions along dim";
  origin["variables"] = statistics_json(statistics, coordinates);
  return origin;
}

/// "level=500": which of a variable's entries.
std::string entry_text(const VariableStatistics& variable, const Json& coordinates,
                       std::int64_t entry) {
  std::vector<std::string> parts(variable.dims.size());
  for (std::size_t d = parts.size(); d-- > 0;) {
    const std::int64_t i = entry % variable.shape[d];
    entry /= variable.shape[d];
    std::string label = "#" + std::to_string(i);
    const auto labels = coordinates.find(variable.dims[d]);
    if (labels != coordinates.end() && static_cast<std::size_t>(i) < labels->size()) {
      const Json& value = (*labels)[static_cast<std::size_t>(i)];
      label = value.is_string() ? value.get<std::string>() : value.dump();
    }
    parts[d] = variable.dims[d] + "=" + label;
  }
  return join(parts, " ");
}

std::string table_text(const std::vector<VariableStatistics>& statistics, const Json& coordinates) {
  Table table(
      {"variable", "", "count", "NaN", "mean", "std", "min", "max", "tendency mean", "std"});
  for (const VariableStatistics& variable : statistics) {
    for (std::size_t i = 0; i < variable.values.size(); ++i) {
      const Moments& m = variable.values[i];
      const bool any = m.count > 0;
      const bool steps = !variable.tendency_dim.empty() && variable.tendencies[i].count > 0;
      const auto text = [](bool known, double value) {
        return known ? number_text(value, 6) : std::string("-");
      };
      table.add({printable(variable.name) +
                     (variable.log_scale ? fmt::format(", log1p, scale {:g}", *variable.log_scale)
                                         : std::string()),
                 printable(entry_text(variable, coordinates, static_cast<std::int64_t>(i))),
                 format_count(static_cast<std::uint64_t>(m.count)),
                 format_count(static_cast<std::uint64_t>(m.nan)), text(any, m.mean),
                 text(any, m.std()), text(any, m.min), text(any, m.max),
                 text(steps, steps ? variable.tendencies[i].mean : 0),
                 text(steps, steps ? variable.tendencies[i].std() : 0)});
    }
  }
  return table.text(0);
}

/// A view of the command line, and the pass over it.
struct ViewScan {
  ViewScan(const DecodedViews& of, const View& one, const StatisticsCommandOptions& options)
      : opened(of),
        view(one),
        scan(*view.dataset(), view, asked(options)),
        source(source_arrays(view), {options.store.threads}) {
    if (scan.form().variables.empty())
      throw Error(ErrorCode::invalid_argument, "no variable of the view holds numbers",
                  options.view);
  }

  static StatisticsOptions asked(const StatisticsCommandOptions& options) {
    StatisticsOptions asked;
    const bool none = options.per == std::vector<std::string>{"none"};
    if (!options.per.empty()) asked.per = none ? std::vector<std::string>{} : options.per;
    if (!options.tendency.empty())
      asked.tendency = options.tendency == "none" ? "" : options.tendency;
    asked.quantiles = options.quantiles;
    return asked;
  }

  /// Names the run in the folder of its parts.
  Json identity() const {
    return {{"command", "statistics"},
            {"version", 3},
            {"store", place_digest(*opened.opened.store)},
            {"source", source.digests()},
            {"snapshot", opened.opened.snapshot_id()},
            {"view", fingerprint(resolved_view(view).dump())},
            {"numbers", fingerprint(json_text(scan.form().json(), -1))}};
  }

  StatisticsSums read(const StatisticsCommandOptions& options) {
    Log log;
    HeldByViews held;
    for (const auto& each : opened.views) held.add(*each.view);
    Engine engine({.threads = options.store.threads,
                   .memory = opened.opened.budget,
                   .prefetch = false,
                   .store = opened.opened.store,
                   .held = held_memory(opened.opened, held)},
                  log);
    for (const auto& store : opened.opened.stores()) engine.add_store(store);
    Progress progress("Reading");
    StatisticsSums sums =
        scan.read(engine, options.run.task.task, options.run.task.tasks,
                  [&](std::int64_t done, std::int64_t all) { progress.show(done, all); });
    source.confirm();
    return sums;
  }

  const DecodedViews& opened;
  const View& view;
  StatisticsScan scan;
  SourceVersions source;
};

/// The views of the command line. Throws for a mixture whose tasks would have to be merged.
DecodedViews open(const StatisticsCommandOptions& options) {
  DecodedViews opened = open_decoded(options.store, options.view, options.part);
  if (opened.is_mixture && options.run.merges())
    throw Error(ErrorCode::not_supported, "a mixture is read by one process, not by tasks",
                options.view);
  return opened;
}

void write_statistics(const StatisticsCommandOptions& options, const Json& origin,
                      const StatisticsMerge& merge, Output& output) {
  const std::vector<VariableStatistics> found = merge.result();
  const Json& coordinates = merge.form().coordinates;
  const std::string json = json_text(document(origin, found, coordinates)) + "\n";
  if (!options.file.empty()) write_whole_file(options.file, json);
  output.write(options.run.task.json ? json : table_text(found, coordinates));
}

/// Prints the statistics of each view of a mixture, under the view's name.
void mixture_statistics(const StatisticsCommandOptions& options, const DecodedViews& opened,
                        Output& output) {
  if (options.run.is_task())
    throw Error(ErrorCode::not_supported,
                "a mixture is read by one process; share each of its views among tasks, and write "
                "the file of each into its view",
                options.view);
  Json all = Json::object();
  std::string text;
  for (const auto& [name, view] : opened.views) {
    ViewScan scan(opened, *view, options);
    StatisticsMerge merge(scan.scan.form());
    merge.add(scan.read(options));
    const std::vector<VariableStatistics> found = merge.result();
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", printable(name),
                        table_text(found, merge.form().coordinates));
    all[name] = document(origin(opened, *view), found, merge.form().coordinates);
  }
  const std::string json = json_text(Json{{"mix", std::move(all)}}) + "\n";
  if (!options.file.empty()) write_whole_file(options.file, json);
  output.write(options.run.task.json ? json : text);
}

/// A task's result: a line of JSON, then the sums.
std::string part_text(const ViewScan& view, const StatisticsSums& sums) {
  return json_text(origin(view.opened, view.view), -1) + "\n" +
         statistics_part(view.scan.form(), sums);
}

void merge_statistics(const StatisticsCommandOptions& options, Output& output) {
  std::optional<Json> identity;
  if (!options.store.store.empty()) {
    const DecodedViews opened = open(options);
    identity = ViewScan(opened, *opened.views.front().view, options).identity();
  }
  const std::string where = shown_output(options.run.merge);
  Json origin;
  std::optional<StatisticsMerge> merge;
  merge_tasks(options.run, "statistics", std::move(identity), options.store.config,
              [&](std::string_view result) {
                const std::size_t end = std::min(result.find('\n'), result.size() - 1);
                const Json line = parse_json(result.substr(0, end), where);
                StatisticsPart part = parse_statistics_part(result.substr(end + 1), where);
                if (!merge) {
                  origin = line;
                  merge.emplace(std::move(part.form));
                } else if (line != origin || part.form.json() != merge->form().json()) {
                  throw Error(ErrorCode::corrupt, "parts that do not fit together", where);
                }
                merge->add(std::move(part.sums));
              });
  write_statistics(options, origin, *merge, output);
}

void statistics(const StatisticsCommandOptions& options, Output& output) {
  check_task_run(options.run, {{"STORE", options.store.store}, {"--view", options.view}});
  if (options.run.is_task() && !options.file.empty())
    throw UsageError{"a task writes its part into --out; -o goes with --merge"};
  if (options.run.merges()) return merge_statistics(options, output);
  const DecodedViews opened = open(options);
  if (!options.file.empty()) check_outside(places_of(opened.opened), options.file);
  if (opened.is_mixture) return mixture_statistics(options, opened, output);
  ViewScan view(opened, *opened.views.front().view, options);
  if (options.run.is_task())
    return do_task(options.run, view.identity(), places_of(opened.opened), options.store.config,
                   output, [&] { return part_text(view, view.read(options)); });
  StatisticsMerge merge(view.scan.form());
  merge.add(view.read(options));
  write_statistics(options, origin(opened, view.view), merge, output);
}

}  // namespace

CommandAction setup_statistics(CLI::App& app) {
  const auto options = std::make_shared<StatisticsCommandOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option(
         "--view", options->view,
         "the view file; - is standard input; only its selection, variables, samples and log1p "
         "of \"normalize\" are used")
      ->required()
      ->type_name("FILE");
  add_part_option(app, options->part);
  app.add_option("-o,--output", options->file, "write JSON for \"normalize\" to this file")
      ->type_name("FILE");
  app.add_option("--per", options->per,
                 "keep separate numbers for each position along this dimension; may be repeated; "
                 "\"none\" for one number "
                 "(default: levels and channels)")
      ->type_name("DIM")
      ->allow_extra_args(false);
  app.add_option("--tendency", options->tendency,
                 "the dimension of the differences between neighbours; \"none\" for no tendencies "
                 "(default: time)")
      ->type_name("DIM");
  app.add_flag("--quantiles", options->quantiles,
               "medians and quartiles too, which \"normalize\" with \"robust\" needs");
  add_task_run_options(app, options->run);
  require_unless_merged(app, {"STORE", "--view"});
  return [options](Output& output) { statistics(*options, output); };
}

}  // namespace batchfs
