// batchfs view: a starter view for a store.

#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/shaped_starter.h"
#include "tools/cli/command.h"
#include "tools/cli/store_options.h"
#include "tools/cli/text.h"
#include "tools/cli/view_options.h"
#include "tools/cli/view_schema.h"

namespace batchfs {

namespace {

struct ViewCommandOptions {
  StoreOptions store;
  std::string name = "train";
  bool schema = false;
  std::string patch;
  StarterShape shape;

  bool has_shape() const { return !patch.empty() || shape.time > 0 || shape.predict > 0; }
};

constexpr std::int64_t kMaxPatch = 1 << 20, kMaxSteps = 4096;

/// "64" or "chunk".
void read_patch(const std::string& text, StarterShape& shape) {
  shape.chunk_patch = text == "chunk";
  if (text.empty() || shape.chunk_patch) return;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), shape.patch);
  if (failed != std::errc() || end != text.data() + text.size() || shape.patch < 1 ||
      shape.patch > kMaxPatch)
    throw UsageError{"--patch takes a number of positions from 1 to " + std::to_string(kMaxPatch) +
                     ", or chunk, not '" + text + "'"};
}

}  // namespace

CommandAction setup_view(CLI::App& app) {
  const auto options = std::make_shared<ViewCommandOptions>();
  add_store_options(app, options->store);
  CLI::Option* const store = app.get_option("STORE")->required(false);
  app.add_flag("--schema", options->schema,
               "print the JSON schema of views, for editors; without a store")
      ->excludes(store);
  app.add_option("--name", options->name,
                 "the view's name, a directory in the mount (default: train)")
      ->check([](const std::string& name) {
        return is_file_name(name) ? std::string()
                                  : "'" + name + "' cannot be the name of a directory";
      })
      ->type_name("NAME");
  const std::string shape = "The shape of a sample";
  app.add_option("--patch", options->patch,
                 "N positions along each of the last two dimensions; chunk: as a chunk has")
      ->type_name("N|chunk")
      ->group(shape);
  app.add_option("--time", options->shape.time, "this many steps of time (default: 1)")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps).description(""))
      ->type_name("N")
      ->group(shape);
  app.add_option("--predict", options->shape.predict,
                 "this many steps of time after those, as a tensor of their own")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps).description(""))
      ->type_name("N")
      ->group(shape);
  return [options](Output& output) {
    if (options->schema) return output.write(std::string(view_schema()));
    if (options->store.store.empty()) throw UsageError{"STORE is required, or --schema"};
    read_patch(options->patch, options->shape);
    const OpenedStore opened = open_zarr(options->store);
    const Dataset dataset(opened.store, *opened.hierarchy);
    const StarterView starter = options->has_shape()
                                    ? shaped_starter_view(dataset, options->name, options->shape)
                                    : starter_view(dataset, options->name);
    if (!starter.reduced.empty()) {
      std::fputs(fmt::format("batchfs: a batch of everything would take {}; the view has {}. Edit "
                             "it as memory allows; "
                             "`batchfs plan` shows the costs\n",
                             format_size(static_cast<std::uint64_t>(starter.full_bytes)),
                             join(starter.reduced, ", "))
                     .c_str(),
                 stderr);
    }
    output.write(json_text(starter.view) + "\n");
  };
}

}  // namespace batchfs
