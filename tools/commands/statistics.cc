// batchfs statistics: means, deviations and extremes of what a view selects, for its "normalize".

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/pipeline/engine.h"
#include "engine/scan/statistics.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/text.h"
#include "tools/cli/view_options.h"
#include "tools/cli/whole_file.h"

namespace batchfs {

namespace {

struct StatisticsCommandOptions {
  StoreOptions store;
  std::optional<std::string> part;
  std::string view, file, tendency;
  std::vector<std::string> per;
  bool json = false;
};

Json document(const OpenedView& opened, const std::vector<VariableStatistics>& statistics) {
  return {{"store", opened.opened.store->url()},
          {"snapshot", opened.opened.snapshot_id()},
          {"view", opened.view->name()},
          {"std", "of the population"},
          {"tendency", "differences between neighbouring positions along dim"},
          {"variables", statistics_json(statistics, *opened.view)}};
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

/// "level=500": which of a variable's entries.
std::string entry_text(const VariableStatistics& variable, const View& view, std::int64_t entry) {
  std::vector<std::string> parts(variable.dims.size());
  for (std::size_t d = parts.size(); d-- > 0;) {
    const std::int64_t i = entry % variable.shape[d];
    entry /= variable.shape[d];
    std::string label = "#" + std::to_string(i);
    for (const View::Coordinate& coordinate : view.coordinates())
      if (coordinate.name == variable.dims[d]) label = label_text(coordinate.values, i);
    parts[d] = variable.dims[d] + "=" + label;
  }
  return join(parts, " ");
}

std::string table_text(const std::vector<VariableStatistics>& statistics, const View& view) {
  Table table(
      {"variable", "", "count", "NaN", "mean", "std", "min", "max", "tendency mean", "std"});
  for (const VariableStatistics& variable : statistics) {
    for (std::size_t i = 0; i < variable.values.size(); ++i) {
      const Moments& m = variable.values[i];
      const bool any = m.count > 0;
      const bool steps = !variable.tendency_dim.empty() && variable.tendencies[i].count > 0;
      const auto text = [](bool known, double value) {
        return known ? number_text(value) : std::string("-");
      };
      table.add({printable(variable.name),
                 printable(entry_text(variable, view, static_cast<std::int64_t>(i))),
                 format_count(static_cast<std::uint64_t>(m.count)),
                 format_count(static_cast<std::uint64_t>(m.nan)), text(any, m.mean),
                 text(any, m.std()), text(any, m.min), text(any, m.max),
                 text(steps, steps ? variable.tendencies[i].mean : 0),
                 text(steps, steps ? variable.tendencies[i].std() : 0)});
    }
  }
  return table.text(0);
}

void statistics(const StatisticsCommandOptions& options, Output& output) {
  const OpenedView opened = open_view(
      options.store, options.view, {.as_decoded = true, .part = options.part, .first_part = true});
  StatisticsOptions asked;
  const bool none = options.per == std::vector<std::string>{"none"};
  if (!options.per.empty()) asked.per = none ? std::vector<std::string>{} : options.per;
  if (!options.tendency.empty())
    asked.tendency = options.tendency == "none" ? "" : options.tendency;
  Log log;
  Engine engine({.threads = options.store.threads,
                 .memory = opened.opened.budget,
                 .prefetch = false,
                 .store = opened.opened.store},
                log);
  for (const auto& store : opened.opened.stores()) engine.add_store(store);
  std::vector<VariableStatistics> found;
  {
    Progress progress("Reading");
    found =
        compute_statistics(engine, *opened.dataset, *opened.view, asked,
                           [&](std::int64_t done, std::int64_t all) { progress.show(done, all); });
  }
  if (found.empty())
    throw Error(ErrorCode::invalid_argument, "no variable of the view holds numbers", options.view);
  const std::string json = json_text(document(opened, found)) + "\n";
  if (!options.file.empty()) write_whole_file(options.file, json);
  output.write(options.json ? json : table_text(found, *opened.view));
}

}  // namespace

CommandAction setup_statistics(CLI::App& app) {
  const auto options = std::make_shared<StatisticsCommandOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option("--view", options->view,
                 "the view file; only its selection, variables and samples are used")
      ->required()
      ->type_name("FILE");
  add_part_option(app, options->part);
  app.add_option("-o,--output", options->file, "write JSON for \"normalize\" to this file")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "write the JSON to standard output, for programs");
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
  return [options](Output& output) { statistics(*options, output); };
}

}  // namespace batchfs
