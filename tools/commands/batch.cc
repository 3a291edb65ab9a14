// batchfs batch: one batch to standard output, assembled as the mount would.

#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/pipeline/engine.h"
#include "engine/view/describe/provenance_text.h"
#include "fs/formats/formats.h"
#include "tools/cli/command.h"
#include "tools/cli/samples.h"
#include "tools/cli/text.h"
#include "tools/cli/view_memory.h"
#include "tools/cli/view_options.h"

namespace batchfs {

namespace {

struct BatchOptions {
  StoreOptions store;
  std::optional<std::string> part;
  std::string view, format = "npy", tensor;
  std::int64_t epoch = 0, batch = 0, rank = 0, world = 1;
};

/// Which of the batch's files is written.
std::uint32_t file_of(const BatchOptions& options, const View& view, const BatchLayout& layout) {
  if (options.format != "npy") return 0;
  std::vector<std::string> names;
  for (const TensorSpec& tensor : view.tensors()) names.push_back(tensor.name);
  if (options.tensor.empty()) {
    if (names.size() == 1) return layout.tensors[0].file;
    throw UsageError{"a batch of view '" + view.name() +
                     "' has several tensors; name one with --tensor (" + join(names, ", ") +
                     ") or use --format npz or safetensors"};
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == options.tensor) return layout.tensors[i].file;
  }
  throw Error(
      ErrorCode::not_found,
      "the view has no tensor '" + options.tensor + "'" + nearest_or_all(options.tensor, names),
      options.view);
}

/// Throws unless the batch exists.
void check_batch(const BatchOptions& options, const View& view) {
  if (options.rank >= options.world) {
    throw UsageError{"--rank " + std::to_string(options.rank) + " is not below --world " +
                     std::to_string(options.world)};
  }
  const std::int64_t batches = view.rank_batches(options.rank, options.world);
  if (options.batch < batches) return;
  throw Error(ErrorCode::not_found,
              "there is no batch " + std::to_string(options.batch) + ": " +
                  (options.world > 1 ? "the rank" : "an epoch") + " has " +
                  format_count(static_cast<std::uint64_t>(batches)) + ", numbered from 0",
              options.view);
}

void batch(const BatchOptions& options, Output& output) {
  if (!options.tensor.empty() && options.format != "npy") {
    throw UsageError{"--tensor goes with --format npy: " + options.format + " holds all tensors"};
  }
  if (options.format != "json") output.expect_binary("use --format json for the provenance");
  const OpenedView opened = open_view(options.store, options.view, {.part = options.part});
  Log log;
  Engine engine({.threads = options.store.threads,
                 .memory = opened.opened.budget,
                 .prefetch = false,
                 .store = opened.opened.store,
                 .held = held_memory(opened.opened, {opened.view})},
                log);
  for (const auto& store : opened.opened.stores()) engine.add_store(store);
  const std::shared_ptr<const View> shared =
      find_samples(opened.view, opened.opened, options.store, engine, log);
  const View& view = *shared;
  check_batch(options, view);
  const BatchRequest request{
      shared,        &format_named(options.format == "json" ? "npy" : options.format),
      options.epoch, options.batch,
      options.rank,  options.world};
  if (options.format == "json") {
    Budget for_text(opened.opened.budget / 2);
    ProvenanceText text(shared, options.epoch, request.global_batch(), nullptr,
                        reserve_from(for_text));
    for (std::string piece = text.next(); !piece.empty(); piece = text.next()) output.write(piece);
    return;
  }
  const std::uint32_t file =
      file_of(options, view, request.format->layout(view, request.global_batch()));
  const std::shared_ptr<const Batch> made = engine.open(request);
  const MemoryFile& bytes = made->files[file];
  output.write(std::span<const std::byte>(bytes.data(), bytes.size()));
}

}  // namespace

CommandAction setup_batch(CLI::App& app) {
  const auto options = std::make_shared<BatchOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option("--view", options->view, "the view file; - is standard input")
      ->required()
      ->type_name("FILE");
  add_part_option(app, options->part);
  const auto number = [&app](const char* name, std::int64_t& value, std::int64_t low,
                             const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(low, std::int64_t{1} << 62).description(""))
        ->type_name("N");
  };
  number("--epoch", options->epoch, 0, "the epoch (default: 0)");
  number("--batch", options->batch, 0,
         "the batch's number in the epoch, or in its rank (default: 0)");
  number("--rank", options->rank, 0, "the rank whose batches are numbered (default: 0)");
  number("--world", options->world, 1, "the number of ranks (default: 1)");
  app.add_option("--format", options->format,
                 "npy (the default, one tensor), npz, safetensors, png (a picture) or json (the "
                 "provenance)")
      ->check(CLI::IsMember({"npy", "npz", "safetensors", "png", "json"}).description(""))
      ->type_name("npy|npz|safetensors|png|json");
  app.add_option("--tensor", options->tensor,
                 "the tensor to write as npy, when the view has several")
      ->type_name("NAME");
  return [options](Output& output) { batch(*options, output); };
}

}  // namespace batchfs
