// batchfs export: writes the batches of an epoch to files that other loaders read.

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "fs/export/export_run.h"
#include "tools/cli/command.h"
#include "tools/cli/interruption.h"
#include "tools/cli/places.h"
#include "tools/cli/progress.h"
#include "tools/cli/samples.h"
#include "tools/cli/text.h"
#include "tools/cli/view_memory.h"
#include "tools/cli/view_options.h"
#include "tools/tasks/task_options.h"

namespace batchfs {

namespace {

struct ExportCommandOptions {
  StoreOptions store;
  std::optional<std::string> part;
  std::string view, form, batches, codec = "zstd";
  std::int64_t epoch = 0;
  std::uint64_t shard_size = UINT64_C(256) << 20;
  TaskOptions task;
};

using ExportState = ExportResult::State;

/// "A:B", half open; empty ends are those of the epoch.
std::pair<std::int64_t, std::int64_t> batch_range(const std::string& text, std::int64_t batches) {
  if (text.empty()) return {0, batches};
  const std::size_t colon = text.find(':');
  const std::string first = text.substr(0, colon),
                    end = colon == std::string::npos ? "?" : text.substr(colon + 1);
  const auto a = first.empty() ? 0 : parse_exact_number(first);
  const auto b = end.empty() ? static_cast<std::uint64_t>(batches) : parse_exact_number(end);
  if (!a || !b || *a >= *b) throw UsageError{"--batches '" + text + "' is not FIRST:END, as 0:100"};
  if (*b > static_cast<std::uint64_t>(batches))
    throw Error(ErrorCode::not_found,
                fmt::format("the epoch has {} batches, numbered from 0",
                            format_count(static_cast<std::uint64_t>(batches))),
                "--batches " + text);
  return {static_cast<std::int64_t>(*a), static_cast<std::int64_t>(*b)};
}

const char* export_state_name(ExportState state) {
  if (state == ExportState::finished) return "finished";
  return state == ExportState::task_done ? "task done" : "interrupted";
}

void export_batches(const ExportCommandOptions& options, Output& output) {
  ExportOptions asked;
  try {
    asked.compression = parse_compression(options.codec);
  } catch (const Error& error) {
    throw UsageError{error.what()};
  }
  check_task(options.task);
  Interruption interruption;
  const OpenedView opened = open_view(options.store, options.view, {.part = options.part});
  check_apart(places_of(opened.opened), options.task.output);
  const std::shared_ptr<OutputStore> out = open_output(options.task.output, options.store.config);
  Log log;
  const std::uint64_t budget = opened.opened.budget;
  Engine engine({.threads = options.store.threads,
                 .memory = budget / 2,
                 .store = opened.opened.store,
                 .held = held_memory(opened.opened, {opened.view})},
                log);
  for (const auto& store : opened.opened.stores()) engine.add_store(store);
  asked.form = options.form;
  ExportRange& range = asked.range;
  range.view = find_samples(opened.view, opened.opened, options.store, engine, log);
  range.epoch = options.epoch;
  std::tie(range.first, range.end) = batch_range(options.batches, range.view->batches());
  if (joins_batches(options.form))
    range.batches_per_unit =
        batches_per_unit(*range.view, range.first, range.end, options.shard_size, budget / 2);
  asked.source = opened.opened.snapshot_id();
  asked.threads = options.store.threads;
  asked.memory = budget / 2;
  asked.task = options.task.task;
  asked.tasks = options.task.tasks;
  interruption.guard();
  ExportResult result;
  {
    Progress progress("exporting");
    asked.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
    asked.cancelled = [&] { return interruption.requested(); };
    result = run_export(engine, asked, out);
  }
  if (options.task.json) {
    output.write(json_text({{"store", opened.opened.store->url()},
                            {"view", range.view->name()},
                            {"output", out->url()},
                            {"form", options.form},
                            {"epoch", options.epoch},
                            {"batches", Json::array({range.first, range.end})},
                            {"batches_per_object", range.batches_per_unit},
                            {"state", export_state_name(result.state)},
                            {"objects_done", result.units_done},
                            {"objects_skipped", result.units_skipped}}) +
                 "\n");
  } else if (result.state == ExportState::finished) {
    output.write(fmt::format("{}: finished\n", out->url()));
  } else if (result.state == ExportState::task_done) {
    output.write(fmt::format("task {} of {}: done\n", options.task.task, options.task.tasks));
  }
  if (result.state == ExportState::interrupted) end_interrupted(output, out->url());
}

}  // namespace

CommandAction setup_export(CLI::App& app) {
  const auto options = std::make_shared<ExportCommandOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option("--view", options->view, "the view file; - is standard input")
      ->required()
      ->type_name("FILE");
  add_part_option(app, options->part);
  app.add_option("--to", options->form, "what to write: " + std::string(kExportForms))
      ->required()
      ->check(CLI::IsMember({"zarr", "webdataset", "mds", "safetensors", "npz"}).description(""))
      ->type_name("FORM");
  add_output_folder_option(app, options->task);
  app.add_option("--epoch", options->epoch, "the epoch whose order is written (default: 0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 62).description(""))
      ->type_name("N");
  app.add_option("--batches", options->batches, "only these batches, the end excluded: 0:100")
      ->type_name("A:B");
  app.add_option("--codec", options->codec,
                 "compress zarr with zstd, blosc, gzip or none, with a level (default: zstd)")
      ->type_name("CODEC");
  add_size_option(app, "--shard-size", options->shard_size,
                  "bytes of values in an object of zarr, webdataset and mds, at most a quarter of "
                  "half the memory (default: 256M)");
  add_task_options(app, options->task);
  return [options](Output& output) { export_batches(*options, output); };
}

}  // namespace batchfs
