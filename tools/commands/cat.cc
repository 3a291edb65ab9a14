// batchfs cat: the values of one array, anywhere in the store.

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/dataset/fields.h"
#include "engine/dataset/read_variable.h"
#include "tools/cli/command.h"
#include "tools/cli/groups.h"
#include "tools/cli/levels.h"
#include "tools/cli/selected_values.h"
#include "tools/cli/store_options.h"
#include "tools/cli/stores/named_arrays.h"
#include "tools/cli/text.h"
#include "tools/cli/value_writer.h"

namespace batchfs {

namespace {

struct CatOptions {
  StoreOptions store;
  std::string array;
  std::vector<std::string> select;
  std::string decode = "cf", format = "npy";
};

/// The array's path in the hierarchy: a leading and a trailing slash are allowed, nothing stranger.
std::string path_of(const std::string& typed) {
  std::string path = typed;
  if (!path.empty() && path.front() == '/') path.erase(0, 1);
  if (!path.empty() && path.back() == '/') path.pop_back();
  if (!path.empty()) check_key(path);
  return path;
}

/// The arrays that could have been meant, when `path` is none.
Error no_array(const Hierarchy& hierarchy, const std::string& path, const std::string& url) {
  if (const std::string why = hierarchy.problem_of(path); !why.empty())
    return Error(ErrorCode::corrupt, why, url);
  std::vector<std::string> paths;
  for (const auto& [name, metadata] : hierarchy.arrays) {
    if (name.ends_with("/" + path))
      return Error(ErrorCode::not_found,
                   "there is no array '" + path + "', did you mean '" + name + "'?", url);
    paths.push_back(name.empty() ? "/" : name);
  }
  if (hierarchy.groups.contains(path)) {
    std::vector<std::string> below = hierarchy.children(path);
    if (below.size() > 8) {
      below.resize(8);
      below.emplace_back("...");
    }
    return Error(ErrorCode::not_found,
                 "'" + (path.empty() ? "/" : path) +
                     "' is a group, name an array in it: " + join(below, ", "),
                 url);
  }
  return Error(ErrorCode::not_found,
               "there is no array '" + path + "'" + nearest_or_all(path, paths), url);
}

/// With --level: "image" stands for the level's array.
std::string path_of_level(const OpenedStore& opened, const std::string& path) {
  const std::string group = parent_group(path);
  const std::string name = path.substr(group.empty() ? 0 : group.size() + 1);
  if (name != kLevelVariable)
    throw UsageError{"with --level, ARRAY is " + std::string(kLevelVariable) + ", not '" + path +
                     "'"};
  const std::string where = "--level";
  try {
    return level_arrays(*opened.hierarchy, group, {}, *opened.level).at(kLevelVariable);
  } catch (Error& error) {
    throw error.at(where);
  }
}

/// `D=SEL` as typed.
struct Selection {
  std::string dim, text, where;
};
std::vector<Selection> split_selections(const std::vector<std::string>& typed) {
  std::vector<Selection> selections;
  for (const std::string& text : typed) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError{"--select takes DIMENSION=LABELS, not '" + text + "'"};
    }
    selections.push_back({text.substr(0, equals), text.substr(equals + 1), "--select " + text});
    for (std::size_t i = 0; i + 1 < selections.size(); ++i) {
      if (selections[i].dim == selections.back().dim)
        throw UsageError{"--select names '" + selections[i].dim + "' twice"};
    }
  }
  return selections;
}

using NamedDims = std::vector<std::pair<std::string, std::int64_t>>;

/// Each selection by its dimension: `time.month=6` is one of "time", if no dimension has that name.
std::map<std::string, Selector> parse_selections(const std::vector<Selection>& selections,
                                                 const NamedDims& dims) {
  std::vector<std::string> names;
  for (const auto& [name, length] : dims) names.push_back(name);
  const auto is_dim = [&names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::map<std::string, Selector> selectors;
  for (const auto& [name, text, where] : selections)
    if (is_dim(name)) selectors.emplace(name, parse_selector(text, where));
  for (const auto& [name, text, where] : selections) {
    if (is_dim(name)) continue;
    const std::size_t dot = name.rfind('.');
    const std::string dim = name.substr(0, dot);
    if (dot == std::string::npos || !is_dim(dim))
      throw Error(ErrorCode::not_found,
                  "the array has no dimension '" + dim + "'" + nearest_or_all(dim, names), where);
    const auto field = parse_calendar_field(name.substr(dot + 1));
    if (!field)
      throw Error(ErrorCode::not_found,
                  "'" + name.substr(dot + 1) + "' is not a field of a time; there are " +
                      calendar_field_names(),
                  where);
    Selector& selector = selectors[dim];
    selector.fields.add(*field, text, where);
    selector.where = selector.where.empty() ? where : selector.where + " " + where;
  }
  return selectors;
}

/// The array as a variable among the coordinates of its own dimensions: other arrays of the group
/// need not fit together with it.
Dataset dataset_of(const OpenedStore& opened, const std::string& path, const std::string& name) {
  const Hierarchy& hierarchy = *opened.hierarchy;
  const ArrayMetadata* of_field =
      hierarchy.arrays.contains(path) ? nullptr : array_of_field(hierarchy, path);
  const std::vector<std::string> dims =
      dimension_names(of_field != nullptr ? *of_field : hierarchy.array(path));
  std::set<std::string> names(dims.begin(), dims.end());
  names.insert(name);
  return Dataset(opened.store, *opened.hierarchy,
                 path.substr(0, path.size() - std::min(path.size(), name.size() + 1)), names);
}

std::vector<Positions> choose(const Dataset& dataset, const NamedDims& dims,
                              const std::map<std::string, Selector>& selectors) {
  std::vector<Positions> positions;
  for (const auto& [name, length] : dims) {
    auto selector = selectors.find(name);
    if (selector == selectors.end()) selector = selectors.find(dataset.original_dim(name));
    positions.push_back(selector == selectors.end() ? Positions::range(0, length)
                                                    : select(dataset, name, selector->second));
  }
  return positions;
}

/// For people: at most three positions at each end of a long dimension. Returns which dimensions
/// were shortened.
Dims shorten(std::vector<Positions>& positions) {
  constexpr std::int64_t kAll = 1000, kEdge = 3;
  __int128 elements = 1;
  for (const Positions& chosen : positions)
    elements = std::min<__int128>(elements * chosen.size(), INT64_MAX);
  Dims elided;
  for (Positions& chosen : positions) {
    const bool shortened = elements > kAll && chosen.size() > 2 * kEdge;
    if (!chosen.drops_dim()) elided.push_back(shortened ? 1 : 0);
    if (!shortened) continue;
    std::vector<std::int64_t> ends;
    for (std::int64_t i = 0; i < kEdge; ++i) ends.push_back(chosen[i]);
    for (std::int64_t i = kEdge; i > 0; --i) ends.push_back(chosen[chosen.size() - i]);
    chosen = Positions::list(std::move(ends));
  }
  return elided;
}

/// "t2m (time: 132, latitude: 73) float32": the heading of the values for people, followed by
/// `note`.
std::string heading(const std::string& path, const NamedDims& dims,
                    const std::vector<Positions>& positions, const DataType& type,
                    const std::string& note) {
  std::vector<std::string> lengths;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!positions[d].drops_dim()) {
      lengths.push_back(dims[d].first + ": " + std::to_string(positions[d].size()));
    }
  }
  const std::string line =
      (path.empty() ? "/" : path) + " (" + join(lengths, ", ") + ") " + type.name();
  return printable(line) + "\n" + (note.empty() ? "" : printable(note) + "\n");
}

void cat(const CatOptions& options, Output& output) {
  if (options.format == "npy") output.expect_binary("take --format text");
  const std::vector<Selection> selections = split_selections(options.select);
  const std::string typed = path_of(options.array);
  OpenedStore opened = open_zarr(options.store);
  std::string path =
      opened.group.empty() || typed.empty() ? opened.group + typed : opened.group + "/" + typed;
  find_named(opened, {path});
  if (opened.level) path = path_of_level(opened, path);
  if (!opened.hierarchy->arrays.contains(path) &&
      array_of_field(*opened.hierarchy, path) == nullptr) {
    throw no_array(*opened.hierarchy, path, opened.store->url());
  }
  const std::string name = path.empty() ? "values" : path.substr(path.rfind('/') + 1);
  const Dataset dataset = dataset_of(opened, path, name);
  Variable variable = dataset.variable(name);
  const Decode decode = options.decode == "raw" ? Decode::raw : Decode::cf;
  if (decode == Decode::cf) variable.cf = settled_decoding(variable);

  const NamedDims dims = SelectedValues::dims_of(variable, decode);
  std::vector<Positions> positions = choose(dataset, dims, parse_selections(selections, dims));
  const std::vector<Positions> chosen = positions;
  const bool for_people = options.format == "text";
  const Dims elided = for_people ? shorten(positions) : Dims();
  const SelectedValues values(variable, decode, std::move(positions));

  if (for_people)
    output.write(
        heading(path, dims, chosen, values.type(), decode == Decode::cf ? variable.cf.note : ""));
  const std::unique_ptr<ValueWriter> writer =
      for_people                 ? text_writer(output, values.type(), values.shape(), elided)
      : options.format == "json" ? json_writer(output, values.type(), values.shape())
                                 : npy_writer(output, values.type(), values.shape());
  Log log;
  Engine engine({.threads = options.store.threads,
                 .memory = opened.budget,
                 .prefetch = false,
                 .store = opened.store,
                 .held = opened.held_memory() + values.held_memory()},
                log);
  // A quarter for output, the rest for chunks.
  values.for_each_piece(engine, std::min<std::uint64_t>(engine.budget().limit() / 4, 256 << 20),
                        [&](std::span<const std::byte> elements) { writer->write(elements); });
  writer->finish();
}

}  // namespace

CommandAction setup_cat(CLI::App& app) {
  const auto options = std::make_shared<CatOptions>();
  add_store_options(app, options->store);
  app.add_option("ARRAY", options->array,
                 "the array's path in the store; / when STORE is an array itself")
      ->required()
      ->type_name("");
  app.add_option(
         "--select", options->select,
         "select along dimension D by labels (time=2000-01-01:2000-01-31, level=500,850), "
         "positions (time=#0:#4) or parts of dates (time.month=6,7,8); may be given once for each")
      ->type_name("D=SEL")
      ->allow_extra_args(false);
  app.add_option("--decode", options->decode,
                 "cf: values as of xarray.open_zarr (the default); raw: as stored")
      ->check(CLI::IsMember({"raw", "cf"}).description(""))
      ->type_name("raw|cf");
  app.add_option(
         "--format", options->format,
         "npy (the default): for numpy.load; text: for people; json: a nested list, NaN as null")
      ->check(CLI::IsMember({"npy", "text", "json"}).description(""))
      ->type_name("npy|text|json");
  return [options](Output& output) { cat(*options, output); };
}

}  // namespace batchfs
