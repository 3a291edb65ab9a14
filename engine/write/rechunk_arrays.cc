#include "engine/write/rechunk_arrays.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/dataset.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

bool is_below(const std::string& path, const std::string& group) {
  return group.empty() || path == group || path.starts_with(group + "/");
}

std::string name_of_node(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Names of coordinates that an array's attribute lists: "lat lon".
std::vector<std::string> named_coordinates(const ArrayMetadata& array) {
  const auto found = array.attributes.find("coordinates");
  if (found == array.attributes.end() || !found->is_string()) return {};
  return split(found->get<std::string>(), ' ');
}

using PathSet = std::set<std::string>;

/// The arrays to copy: paths in the store.
PathSet chosen_paths(const Hierarchy& hierarchy, const RechunkOptions& options) {
  PathSet all, chosen;
  std::vector<std::string> names;
  for (const auto& [path, array] : hierarchy.arrays)
    if (is_below(path, options.group)) {
      all.insert(path);
      names.push_back(path_below(path, options.group));
    }
  if (all.empty())
    throw Error(ErrorCode::not_found, "there is no array in the group",
                options.group.empty() ? "/" : options.group);
  if (options.variables.empty() && !hierarchy.complete)
    throw Error(ErrorCode::not_supported,
                "the server cannot list its arrays and the metadata is not consolidated; name what "
                "to copy with --array and --variables");
  if (options.variables.empty()) return all;
  for (const std::string& name : options.variables) {
    const std::string path = join_path(options.group, name);
    if (!all.contains(path))
      throw Error(ErrorCode::not_found,
                  fmt::format("no array '{}'{}", name, nearest_or_all(name, names)), "--variables");
    chosen.insert(path);
    const ArrayMetadata& array = hierarchy.arrays.at(path);
    std::vector<std::string> coordinates = dimension_names(array);
    for (std::string& one : named_coordinates(array)) coordinates.push_back(std::move(one));
    for (const std::string& one : coordinates)
      if (const std::string beside = join_path(parent_group(path), one); all.contains(beside))
        chosen.insert(beside);
  }
  return chosen;
}

std::int64_t clipped(std::int64_t length, std::int64_t all) {
  return length == kWholeDim ? std::max<std::int64_t>(all, 1)
                             : std::clamp<std::int64_t>(length, 1, std::max<std::int64_t>(all, 1));
}

OutputChunks chunks_of(const ArrayMetadata& source, const Dims& present,
                       const std::vector<std::string>& dims, bool keeps,
                       const RechunkOptions& options) {
  OutputChunks made{present, present};
  const std::vector<std::size_t> firsts = first_dims_of_name(source);
  // A length for "c" is that of "c:2" as well, the same name again, unless it has one itself.
  const auto length_of = [&](const LengthByDim& lengths, std::size_t d) -> const std::int64_t* {
    for (const std::string& dim : {dims[d], dims[firsts[d]]})
      if (const auto given = lengths.find(dim); given != lengths.end() && !keeps)
        return &given->second;
    return nullptr;
  };
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int64_t all = source.shape[d];
    made.chunk[d] = clipped(present[d], all);
    if (const std::int64_t* given = length_of(options.chunks, d))
      made.chunk[d] = clipped(*given, all);
    made.object[d] = made.chunk[d];
    const std::int64_t* given = length_of(options.shards, d);
    if (given == nullptr) continue;
    made.is_sharded = true;
    const std::int64_t chunk = made.chunk[d];
    const std::int64_t covering = (std::max<std::int64_t>(all, 1) + chunk - 1) / chunk * chunk;
    made.object[d] = *given == kWholeDim ? covering : std::min(*given, covering);
  }
  return made;
}

/// Options that name dimensions which no copied array has are mistakes.
void check_dims(const LengthByDim& lengths, const std::set<std::string>& dims,
                const std::string& option) {
  for (const auto& [dim, length] : lengths)
    if (!dims.contains(dim))
      throw Error(ErrorCode::not_found,
                  fmt::format("no array has the dimension '{}'{}", dim,
                              nearest_or_all(dim, {dims.begin(), dims.end()})),
                  option);
}

}  // namespace

std::string path_below(const std::string& path, const std::string& group) {
  if (group.empty()) return path;
  return path == group ? "" : path.substr(group.size() + 1);
}

LengthByDim parse_lengths(const std::string& text, const std::string& option) {
  LengthByDim lengths;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string dim = part.substr(0, equals);
    const auto wrong = [&] {
      return Error(ErrorCode::invalid_argument,
                   fmt::format("'{}' is not DIM=LENGTH, as time=1,latitude=721 (-1: all)", part),
                   option);
    };
    if (equals == std::string::npos || dim.empty()) throw wrong();
    const std::string number = part.substr(equals + 1);
    const std::optional<std::uint64_t> length = parse_exact_number(number);
    if (number != "-1" && (!length || *length == 0 || *length > INT64_MAX)) throw wrong();
    const std::int64_t value = length ? static_cast<std::int64_t>(*length) : kWholeDim;
    if (!lengths.emplace(dim, value).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is there twice", dim), option);
  }
  return lengths;
}

std::vector<RechunkArray> choose_arrays(const std::shared_ptr<Store>& store,
                                        const std::shared_ptr<const Hierarchy>& hierarchy,
                                        const RechunkOptions& options) {
  std::vector<RechunkArray> arrays;
  std::set<std::string> all_dims;
  for (const std::string& path : chosen_paths(*hierarchy, options)) {
    RechunkArray made;
    made.source = std::shared_ptr<const ArrayMetadata>(hierarchy, &hierarchy->arrays.at(path));
    const ArrayMetadata& source = *made.source;
    if (!source.unsupported.empty())
      throw Error(ErrorCode::not_supported, source.unsupported + "; leave it out with --variables",
                  path);
    const std::string name = path_below(path, options.group);
    Dims present = source.chunk_shape;
    try {
      if (!source.type.is_variable()) {
        made.array = std::make_unique<Array>(store, made.source);
        present = made.array->grid().chunk_shape();
      }
    } catch (Error& error) {
      throw error.at(path);
    }
    const std::vector<std::string> dims = dimension_names(source);
    const bool is_index = dims.size() == 1 && dims[0] == name_of_node(path);
    const bool keeps = source.type.is_variable() ||
                       (is_index && std::find(options.variables.begin(), options.variables.end(),
                                              name) == options.variables.end());
    all_dims.insert(dims.begin(), dims.end());
    made.output =
        make_output_array(source, name, options.format,
                          chunks_of(source, present, dims, keeps, options), options.compression);
    arrays.push_back(std::move(made));
  }
  check_dims(options.chunks, all_dims, "--chunks");
  check_dims(options.shards, all_dims, "--shards");
  return arrays;
}

}  // namespace batchfs
