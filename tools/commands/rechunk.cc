// batchfs rechunk: copies a store, or some of its arrays, to a Zarr store with other chunks.

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/write/rechunk.h"
#include "engine/write/shard_advice.h"
#include "tools/cli/command.h"
#include "tools/cli/given_options.h"
#include "tools/cli/groups.h"
#include "tools/cli/interruption.h"
#include "tools/cli/places.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_options.h"
#include "tools/cli/text.h"
#include "tools/tasks/task_options.h"

namespace batchfs {

namespace {

struct RechunkCommandOptions {
  StoreOptions store;
  std::string temporary, chunks, shards, codec = "zstd";
  std::vector<std::string> variables;
  int format = 3;
  TaskOptions task;
  bool dry_run = false;
};

using State = RechunkResult::State;

const char* state_name(State state) {
  switch (state) {
    case State::finished:
      return "finished";
    case State::task_done:
      return "task done";
    case State::first_pass:
      return "first pass of the task done";
    case State::interrupted:
      break;
  }
  return "interrupted";
}

Json dims_list(const Dims& dims) {
  return Json(std::vector<std::int64_t>(dims.begin(), dims.end()));
}

std::string dims_words(const Dims& dims) {
  if (dims.empty()) return "-";
  std::vector<std::string> words;
  for (const std::int64_t length : dims) words.push_back(std::to_string(length));
  return join(words, " x ");
}

std::string shown_path(const std::string& path) { return path.empty() ? "/" : path; }

Json plan_json(const Rechunk& rechunk) {
  Json arrays = Json::array();
  for (const RechunkArray& array : rechunk.arrays()) {
    Json one = {{"name", shown_path(array.output.path)},
                {"shape", dims_list(array.source->shape)},
                {"chunks", dims_list(array.output.chunks.chunk)},
                {"objects", object_count(array)}};
    if (array.output.chunks.is_sharded) one["shards"] = dims_list(array.output.chunks.object);
    if (array.array != nullptr) {
      one["from_chunks"] = dims_list(array.array->grid().chunk_shape());
      one["passes"] = array.plan.two_passes ? 2 : 1;
      one["read_region"] = dims_list(array.plan.read_region);
      one["write_region"] = dims_list(array.plan.write_region);
      one["region_bytes"] = std::max(array.plan.read_bytes, array.plan.write_bytes);
    }
    arrays.push_back(std::move(one));
  }
  return {{"passes", rechunk.has_two_passes() ? 2 : 1},
          {"decoded_bytes", rechunk.decoded_bytes()},
          {"arrays", std::move(arrays)}};
}

std::string plan_text(const Rechunk& rechunk) {
  Table table({"array", "shape", "chunks", "new chunks", "shards", "passes", "region", "bytes"});
  for (const RechunkArray& array : rechunk.arrays()) {
    const bool sharded = array.output.chunks.is_sharded;
    const bool strings = array.array == nullptr;
    table.add({printable(shown_path(array.output.path)), dims_words(array.source->shape),
               strings ? "-" : dims_words(array.array->grid().chunk_shape()),
               dims_words(array.output.chunks.chunk),
               sharded ? dims_words(array.output.chunks.object) : "-",
               array.plan.two_passes ? "2" : "1",
               strings ? "-" : dims_words(array.plan.read_region),
               strings ? "-" : format_size(array.plan.read_bytes)});
  }
  return table.text() + fmt::format("{} decoded\n", format_size(rechunk.decoded_bytes()));
}

std::string advice_text(const Rechunk& rechunk, int format) {
  const auto advice = advise_on_shards(rechunk.arrays());
  if (!advice) return "";
  std::string text = fmt::format(
      "{} has {} objects of {} before compression, which are slow to write, list and read; ",
      printable(shown_path(advice->array)), format_count(advice->objects),
      format_size(advice->bytes));
  std::vector<std::string> lengths;
  for (const auto& [dim, length] : advice->shards)
    lengths.push_back(fmt::format("{}={}", dim, length));
  if (format == 2) return text + "choose larger --chunks, or --format 3 with --shards\n";
  if (lengths.empty()) return text + "choose larger --chunks, or --shards\n";
  return text + fmt::format("with --shards {} it would have {}\n",
                            shell_word(printable(join(lengths, ","))),
                            format_count(advice->remaining));
}

std::string result_text(const RechunkResult& result, const RechunkCommandOptions& options,
                        const std::string& output) {
  const std::string put =
      fmt::format("{} objects, {}", format_count(result.objects), format_size(result.stored_bytes));
  switch (result.state) {
    case State::finished:
      return result.regions_done == 0 && result.objects == 0
                 ? fmt::format("{}: finished before\n", output)
                 : fmt::format("{}: finished; this run wrote {}\n", output, put);
    case State::task_done:
      return fmt::format("task {} of {}: done, {}\n", options.task.task, options.task.tasks, put);
    case State::first_pass:
      return fmt::format(
          "task {} of {}: first pass done; run it again when all tasks have done theirs\n",
          options.task.task, options.task.tasks);
    case State::interrupted:
      break;
  }
  return "";
}

void rechunk(const RechunkCommandOptions& options, Output& output) {
  RechunkOptions asked;
  try {
    if (!options.chunks.empty()) asked.chunks = parse_lengths(options.chunks, "--chunks");
    if (!options.shards.empty()) asked.shards = parse_lengths(options.shards, "--shards");
    asked.compression = parse_compression(options.codec);
  } catch (const Error& error) {
    throw UsageError{error.what()};
  }
  check_task(options.task);
  Interruption interruption;
  const OpenedStore opened = open_zarr(options.store);
  check_apart(places_of(opened), options.task.output);
  if (!options.temporary.empty())
    check_outside(places_of(opened), options.temporary, "temporary folder");
  const std::shared_ptr<OutputStore> out = open_output(options.task.output, options.store.config);
  asked.format = options.format;
  asked.variables = options.variables;
  asked.group = opened.group;
  asked.threads = options.store.threads;
  asked.memory = opened.budget - std::min(opened.budget, opened.held_memory());
  asked.remote_output = !out->is_local();
  asked.task = options.task.task;
  asked.tasks = options.task.tasks;
  Rechunk copy(opened.store, opened.hierarchy, asked);
  Json document = {
      {"store", opened.store->url()}, {"output", out->url()}, {"plan", plan_json(copy)}};
  Json left_out = Json::array();
  std::string left_out_text;
  for (const auto& [key, why] : opened.hierarchy->problems) {
    if (!is_in_group(key, opened.group) || !options.variables.empty()) continue;
    left_out.push_back({{"key", key}, {"why", why}});
    left_out_text += fmt::format("left out: {}: {}\n", printable(key), printable(why));
  }
  document["left_out"] = std::move(left_out);
  if (options.dry_run) {
    output.write(options.task.json
                     ? json_text(document) + "\n"
                     : plan_text(copy) + left_out_text + advice_text(copy, options.format));
    return;
  }
  if (const std::string advice = advice_text(copy, options.format);
      !advice.empty() && !options.task.json) {
    output.write(advice);
    output.finish();
  }
  interruption.guard();
  RechunkResult result;
  {
    Progress progress("rechunking");
    RechunkRun how;
    how.temporary = options.temporary;
    how.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
    how.cancelled = [&] { return interruption.requested(); };
    result = copy.run(out, how);
  }
  document["state"] = state_name(result.state);
  document["regions_done"] = result.regions_done;
  document["regions_skipped"] = result.regions_skipped;
  document["objects"] = result.objects;
  document["stored_bytes"] = result.stored_bytes;
  output.write(options.task.json ? json_text(document) + "\n"
                                 : left_out_text + result_text(result, options, out->url()));
  if (result.state == State::interrupted) end_interrupted(output, out->url());
}

}  // namespace

CommandAction setup_rechunk(CLI::App& app) {
  const auto options = std::make_shared<RechunkCommandOptions>();
  add_store_options(app, options->store);
  add_output_folder_option(app, options->task);
  app.add_option("--chunks", options->chunks,
                 "lengths of the new chunks by dimension, time=1,latitude=721 (-1: all); other "
                 "dimensions keep theirs")
      ->type_name("DIM=N,...");
  app.add_option("--shards", options->shards,
                 "lengths of shards, each a multiple of the chunk's (default: no shards)")
      ->type_name("DIM=N,...");
  app.add_option("--codec", options->codec,
                 "compress with zstd, blosc, gzip or none, with a level: zstd:9, blosc:lz4:5 "
                 "(default: zstd)")
      ->type_name("CODEC");
  app.add_option("--format", options->format, "Zarr format of the output (default: 3)")
      ->check(CLI::IsMember({2, 3}).description(""))
      ->type_name("2|3");
  app.add_option("--variables", options->variables,
                 "copy these arrays and their coordinates (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  app.add_option("--temporary", options->temporary,
                 "folder for the pieces between two passes (default: in the output)")
      ->type_name("DIR");
  app.add_flag("--dry-run", options->dry_run, "print the plan and write nothing");
  add_task_options(app, options->task);
  return [options](Output& output) { rechunk(*options, output); };
}

}  // namespace batchfs
