// batchfs view: a starter view for a store.

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/image_starter.h"
#include "engine/view/shaped_starter.h"
#include "tools/cli/command.h"
#include "tools/cli/groups.h"
#include "tools/cli/levels.h"
#include "tools/cli/store_options.h"
#include "tools/cli/stores/named_arrays.h"
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

/// The view with a key inserted after its name.
Json with_key(const Json& view, const std::string& added, const Json& its_value) {
  Json result = Json::object();
  for (const auto& [key, value] : view.items()) {
    if (key != "name" && !result.contains(added)) result[added] = its_value;
    result[key] = value;
  }
  return result;
}

/// Keeps all channels in one sample of an image's starter view with a shape.
void keep_channels(const Variable& image, const StarterShape& shape, Json& window) {
  const std::vector<ArrayAxis>& axes = image.metadata->axes;
  const bool has_time = std::any_of(axes.begin(), axes.end(), [](const ArrayAxis& axis) {
    return axis.type == ArrayAxis::Type::time;
  });
  if ((shape.time > 0 || shape.predict > 0) && !has_time)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the image has no axis of time; leave {} out",
                            shape.time > 0 ? "--time" : "--predict"));
  for (std::size_t d = 0; d < axes.size() && window.size() > 1; ++d)
    if (axes[d].type == ArrayAxis::Type::channel) window.erase(image.dims[d]);
}

StarterView make_starter(const OpenedStore& opened, const ViewCommandOptions& options) {
  const OmeMetadata& ome = opened.hierarchy->ome;
  if (!ome.images.contains(opened.group) && !opened.level) {
    const Dataset dataset(opened.store, *opened.hierarchy, opened.group);
    // names some arrays
    if (dataset.variables().empty() && !ome.images.empty()) ome.image(opened.group);
    if (dataset.variables().empty() && !opened.hierarchy->complete)
      throw Error(ErrorCode::not_found,
                  "no array of the group is known; " + naming_advice(*opened.hierarchy));
    if (!has_view_variables(dataset))
      throw Error(ErrorCode::not_found, "there is no variable to make batches of" +
                                            other_groups_text(*opened.hierarchy, opened.group));
    return options.has_shape() ? shaped_starter_view(dataset, options.name, options.shape)
                               : starter_view(dataset, options.name);
  }
  const LevelChoice choice = opened.level.value_or(LevelChoice{});
  const auto level = static_cast<std::int64_t>(choose_level(ome.image(opened.group), choice));
  const Dataset dataset(opened.store, *opened.hierarchy, opened.group, std::set<std::string>(),
                        level_arrays(*opened.hierarchy, opened.group, {}, choice));
  if (!options.has_shape()) return image_starter_view(dataset, kLevelVariable, level, options.name);
  StarterView starter = shaped_starter_view(dataset, options.name, options.shape);
  keep_channels(dataset.variable(kLevelVariable), options.shape, starter.view["window"]);
  starter.view = with_key(starter.view, "level", level);
  return starter;
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
    StarterView starter = make_starter(opened, *options);
    if (!starter.reduced.empty()) {
      std::fputs(fmt::format("batchfs: a batch of everything would take {}; the view has {}. Edit "
                             "it as memory allows; "
                             "`batchfs plan` shows the costs\n",
                             format_size(static_cast<std::uint64_t>(starter.full_bytes)),
                             join(starter.reduced, ", "))
                     .c_str(),
                 stderr);
    }
    if (!opened.group.empty()) starter.view = with_key(starter.view, "group", opened.group);
    output.write(json_text(starter.view) + "\n");
  };
}

}  // namespace batchfs
