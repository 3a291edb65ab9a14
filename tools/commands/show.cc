// batchfs show: one HTML page with a store's contents, with pictures.

#include <algorithm>
#include <chrono>
#include <memory>

#include "engine/base/log.h"
#include "engine/pipeline/engine.h"
#include "tools/cli/command.h"
#include "tools/cli/groups.h"
#include "tools/cli/levels.h"
#include "tools/cli/places.h"
#include "tools/cli/progress.h"
#include "tools/cli/samples.h"
#include "tools/cli/text_layout.h"
#include "tools/cli/view_options.h"
#include "tools/cli/whole_file.h"
#include "tools/page/html.h"
#include "tools/service/served_store.h"
#include "tools/show/show_page.h"

namespace batchfs {

namespace {

struct ShowOptions {
  StoreOptions store;
  std::vector<std::string> views;
  std::string output;
  int pictures = 40;
  std::uint64_t read = UINT64_C(1) << 30;
};

/// The arrays that the command is about.
std::vector<InspectedArray> inspect_arrays(const OpenedStore& opened) {
  std::optional<std::string> level;
  if (opened.level) level = level_array(*opened.hierarchy, opened.group, *opened.level);
  std::vector<InspectedArray> arrays;
  for (const auto& [path, metadata] : opened.hierarchy->arrays)
    if (level ? path == *level : is_in_group(path, opened.group))
      arrays.push_back(inspect_array(opened, metadata));
  read_ranges(arrays);
  measure_stored(*opened.store, arrays, Measure::quickly);
  return arrays;
}

/// A section of the page: an array, or a field of one.
struct Candidate {
  const InspectedArray* array;
  std::string name;
};

/// The arrays and fields that are not coordinates; maps first.
std::vector<Candidate> candidates(const std::vector<InspectedArray>& arrays) {
  std::vector<Candidate> found;
  for (const InspectedArray& array : arrays) {
    if (array.is_coordinate() || !array.unsupported.empty()) continue;
    if (array.fields.empty())
      found.push_back({&array, array.name});
    else
      for (const auto& field : array.fields) found.push_back({&array, field.first});
  }
  std::stable_partition(found.begin(), found.end(), [](const Candidate& candidate) {
    return candidate.array->metadata->shape.size() >= 2;
  });
  return found;
}

void add_variables(ShowPage& page, const ShowOptions& options, Engine& engine) {
  constexpr std::uint64_t kPart = 8;  // of the memory budget
  const std::vector<Candidate> all = candidates(*page.arrays);
  VariableReader reader(*page.opened, engine);
  PresenceLimits presence;
  presence.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Progress progress("Reading");
  std::uint64_t left = options.read;
  std::size_t picture_bytes = 0;
  const auto limits = [&] {
    SampleLimits found;
    found.bytes = std::min({found.bytes, left, page.opened->budget / kPart});
    return found;
  };
  const auto labels_of = [&](const InspectedArray& array, const std::string& dim) {
    return reader.labels_of(array, dim);
  };
  if (options.pictures > 0)
    for (const ColourSet& set : colour_sets(*page.opened->hierarchy, *page.arrays, labels_of)) {
      if (left == 0) break;
      ShownVariable shown = reader.look_at(set, limits());
      left -= std::min(left, shown.bytes);
      picture_bytes += shown.png.size() + shown.coast.size();
      page.colours.push_back(std::move(shown));
    }
  const auto most = std::min(all.size(), static_cast<std::size_t>(options.pictures));
  for (std::size_t i = 0; i < all.size(); ++i) {
    progress.show(static_cast<std::int64_t>(std::min(i, most)), static_cast<std::int64_t>(most));
    const Candidate& next = all[i];
    if (i >= most || left == 0 || picture_bytes > ShowPage::kMaxPictureBytes) {
      page.left_out.push_back(join_path(parent_group(next.array->metadata->path), next.name));
      continue;
    }
    ShownVariable shown = reader.look_at(*next.array, next.name, limits());
    shown.presence = chunk_presence(*page.opened->store, *next.array->metadata, presence);
    left -= std::min(left, shown.bytes);
    picture_bytes += shown.png.size() + shown.coast.size();
    page.variables.push_back(std::move(shown));
  }
}

void add_views(ShowPage& page, OpenedStore& opened, const ShowOptions& options, Engine& engine,
               Log& log) {
  GroupDatasets datasets(opened);
  const std::optional<StandardInput> input = read_standard_input(options.views);
  std::size_t picture_bytes = 0;
  for (const std::string& file : options.views)
    for (const auto& part : load_parts(datasets, file, {}, input)) {
      if (page.views.size() == ShowPage::kMaxViews) {
        ++page.more_views;
        continue;
      }
      ShownView shown =
          look_at_view(engine, find_samples(part, opened, options.store, engine, log), file);
      if (shown.png.size() > ShowPage::kMaxSheetBytes ||
          picture_bytes > ShowPage::kMaxPictureBytes) {
        shown.png.clear();
        shown.note =
            "The picture is left out: it is large; `batchfs batch --format png` writes it.";
      }
      picture_bytes += shown.png.size();
      page.views.push_back(std::move(shown));
    }
}

/// Resolves a mount or a server to its store, and to its views unless others are named.
ShowOptions settled(ShowOptions options) {
  const std::optional<ServedStore> served = served_store(options.store.store);
  if (!served) return options;
  served->complete(options.store);
  if (options.views.empty())
    for (const std::string& view : served->views)
      if (view != "-") options.views.push_back(view);
  return options;
}

void show(const ShowOptions& options, Output& output) {
  OpenedStore opened = open_zarr(options.store);
  if (!options.output.empty()) check_outside(places_of(opened), options.output);
  const std::vector<InspectedArray> arrays = inspect_arrays(opened);
  Log log;
  Engine engine({.threads = options.store.threads,
                 .memory = opened.budget,
                 .prefetch = false,
                 .store = opened.store,
                 .held = opened.held_memory()},
                log);
  for (const auto& store : opened.stores()) engine.add_store(store);
  ShowPage page;
  page.made = local_time();
  page.opened = &opened;
  page.arrays = &arrays;
  add_variables(page, options, engine);
  // Views may add arrays to the hierarchy: the page keeps the hierarchy from before.
  OpenedStore with_views = opened;
  if (!options.views.empty()) add_views(page, with_views, options, engine, log);
  const std::string text = show_page(page);
  if (options.output.empty()) return output.write(text);
  write_whole_file(options.output, text);
}

}  // namespace

CommandAction setup_show(CLI::App& app) {
  const auto options = std::make_shared<ShowOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option("-o,--output", options->output, "write the page to this file")->type_name("FILE");
  app.add_option(
         "--view", options->views,
         "show the first batch of this view, too; - reads it from standard input; may be given "
         "several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--pictures", options->pictures, "show parts of at most N variables (default: 40)")
      ->check(CLI::Range(0, 400).description(""))
      ->type_name("N");
  add_size_option(app, "--read", options->read,
                  "decode at most SIZE of chunks for them (default: 1G)");
  return [options](Output& output) { show(settled(*options), output); };
}

}  // namespace batchfs
