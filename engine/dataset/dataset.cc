#include "engine/dataset/dataset.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/dataset/axis_coordinates.h"
#include "engine/dataset/fields.h"
#include "engine/dataset/read_variable.h"

namespace batchfs {

struct Dataset::Cache {
  std::mutex mutex;
  std::map<std::string, Index> values;
  /// Why labels were found to take too much memory once they were read, by dimension.
  std::map<std::string, Error> refused;
  /// Labels of selections, by dimension.
  std::map<std::string, std::vector<std::weak_ptr<const NdArray>>> selections;

  /// Precondition: `mutex` is held.
  std::uint64_t bytes() const {
    std::uint64_t result = 0;
    for (const auto& [name, index] : values) result += index.values.data.size();
    for (const auto& [name, each] : selections)
      for (const auto& selection : each)
        if (const auto labels = selection.lock()) result += labels->data.size();
    return result;
  }
};

namespace {

using NamedArrays = std::map<std::string, const ArrayMetadata*>;

/// The arrays of a group, not those of groups below it. An array in place of the group is "values"
/// or has its own name.
NamedArrays arrays_of(const Hierarchy& hierarchy, const std::string& path) {
  NamedArrays arrays;
  for (const auto& [array_path, metadata] : hierarchy.arrays) {
    std::string name = array_path;
    if (array_path == path) {
      name = path.empty() ? "values" : path.substr(path.rfind('/') + 1);
    } else if (!path.empty()) {
      if (!array_path.starts_with(path + "/")) continue;
      name = array_path.substr(path.size() + 1);
    }
    if (name.find('/') == std::string::npos) arrays.emplace(std::move(name), &metadata);
  }
  return arrays;
}

/// Adds the index coordinates of the groups above `path` for dimensions of the arrays that are taken
/// and have none, the nearest first, as xarray.DataTree does. One of another length is left out.
/// Returns their names.
template <class IsTaken>
std::set<std::string> inherit_coordinates(const Hierarchy& hierarchy, std::string path,
                                          NamedArrays& arrays, const IsTaken& is_taken) {
  std::map<std::string, std::int64_t> lengths;
  for (const auto& [name, metadata] : arrays) {
    if (!is_taken(name)) continue;
    const std::vector<std::string> dims = dimension_names(*metadata);
    for (std::size_t d = 0; d < dims.size(); ++d) lengths.emplace(dims[d], metadata->shape[d]);
  }
  std::set<std::string> inherited;
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
    for (const auto& [dim, length] : lengths) {
      const auto found = hierarchy.arrays.find(path.empty() ? dim : path + "/" + dim);
      if (found == hierarchy.arrays.end() || arrays.contains(dim)) continue;
      const ArrayMetadata& metadata = found->second;
      if (dimension_names(metadata) != std::vector{dim} || metadata.shape[0] != length) continue;
      arrays.emplace(dim, &metadata);
      inherited.insert(dim);
    }
  }
  return inherited;
}

/// The fields of structured arrays beside them, where no array has their name; `fields` holds them.
void add_fields(NamedArrays& arrays, const std::optional<std::set<std::string>>& only,
                std::list<ArrayMetadata>& fields) {
  constexpr std::uint64_t kMaxMemory = 256 << 20;  // each has a copy of its array's metadata
  NamedArrays found;
  std::uint64_t memory = 0;
  for (const auto& [name, metadata] : arrays) {
    if (memory > kMaxMemory) break;
    for (auto& [ending, field] : field_variables(*metadata)) {
      if (only && !only->contains(name + ending)) continue;
      memory += memory_of(field);
      found.emplace(name + ending, &fields.emplace_back(std::move(field)));
    }
  }
  arrays.merge(found);
}

/// NCZarr's own attributes.
bool is_nczarr(const std::string& key) { return key.starts_with("_nc") || key.starts_with("_NC"); }

/// Bounds of times need no units of their own: CF Conventions, section 7.1. The attributes that
/// each is to have, by name.
std::map<std::string, Json> bounds_attributes(const NamedArrays& arrays) {
  std::map<std::string, Json> result;
  for (const auto& [name, metadata] : arrays) {
    const Json& attributes = metadata->attributes;
    const auto units = attributes.find("units"), bounds = attributes.find("bounds");
    if (units == attributes.end() || bounds == attributes.end() || !units->is_string() ||
        !bounds->is_string())
      continue;
    if (units->get<std::string>().find("since") == std::string::npos) continue;
    Json& wanted = result[bounds->get<std::string>()];
    wanted["units"] = *units;
    if (const auto calendar = attributes.find("calendar"); calendar != attributes.end())
      wanted["calendar"] = *calendar;
  }
  return result;
}

/// Dimensions that are used otherwise than as the last one of character arrays.
std::set<std::string> dims_of_values(const NamedArrays& arrays) {
  std::set<std::string> result;
  for (const auto& [name, metadata] : arrays) {
    result.insert(name);  // of coordinates
    std::vector<std::string> dims = dimension_names(*metadata);
    if (!dims.empty() && metadata->type.kind == Kind::bytes) dims.pop_back();
    result.insert(dims.begin(), dims.end());
  }
  return result;
}

/// Names that dimension_names() made up for repeated ones, with the name that each repeats; those
/// that are as long and that no array has of its own.
std::map<std::string, std::string> find_repeated_dims(const std::vector<Variable>& variables) {
  std::map<std::string, std::string> result;
  std::set<std::string> own;
  for (const Variable& variable : variables) {
    own.insert(variable.name);
    const std::vector<std::size_t> firsts = first_dims_of_name(*variable.metadata);
    for (std::size_t d = 0; d < variable.dims.size(); ++d)
      if (firsts[d] == d)
        own.insert(variable.dims[d]);
      else if (variable.shape[d] == variable.shape[firsts[d]])
        result.emplace(variable.dims[d], variable.dims[firsts[d]]);
  }
  std::erase_if(result, [&own](const auto& each) { return own.contains(each.first); });
  return result;
}

NdArray take(const NdArray& values, const Positions& positions) {
  const std::size_t itemsize = values.type.itemsize;
  NdArray result{values.type,
                 {positions.size()},
                 Buffer(static_cast<std::size_t>(positions.size()) * itemsize)};
  for (std::int64_t i = 0; i < positions.size(); ++i)
    std::memcpy(result.data.data() + static_cast<std::size_t>(i) * itemsize,
                values.data.data() + static_cast<std::size_t>(positions[i]) * itemsize, itemsize);
  return result;
}

bool are_equal(const NdArray& a, const NdArray& b) {
  return a.type == b.type && a.shape == b.shape && a.data.size() == b.data.size() &&
         (a.data.size() == 0 || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0);
}

/// The error for a dimension whose length differs; `other`: the length and the variable before.
Error misfit(const Variable& variable, std::size_t d,
             const std::pair<std::int64_t, std::string>& other) {
  return Error(
      ErrorCode::invalid_argument,
      fmt::format("dimension '{0}' has length {1} in '{2}' and {3} in '{4}'; a view names "
                  "arrays that fit together, \"variables\": [\"{2}\"]",
                  variable.dims[d], other.first, other.second, variable.shape[d], variable.name));
}

}  // namespace

Dataset::Dataset(std::shared_ptr<Store> store, const Hierarchy& hierarchy, const std::string& path,
                 const std::optional<std::set<std::string>>& only,
                 const std::map<std::string, std::string>& more)
    : path_(path), memory_limit_(hierarchy.memory_limit), cache_(std::make_unique<Cache>()) {
  if (const auto group = hierarchy.groups.find(path); group != hierarchy.groups.end())
    attributes_ = group->second.attributes;
  for (const auto& [key, why] : hierarchy.problems) {  // "group/t2m/.zarray"
    const std::size_t begin = path.empty() ? 0 : path.size() + 1, slash = key.rfind('/');
    if (slash != std::string::npos && slash > begin &&
        (path.empty() || key.starts_with(path + "/")))
      problems_.emplace(key.substr(begin, slash - begin), why);
  }
  NamedArrays arrays = arrays_of(hierarchy, path);
  for (const auto& [name, place] : more) arrays.insert_or_assign(name, &hierarchy.array(place));
  const auto is_taken = [&](const std::string& name) {
    return !only || only->contains(name) || more.contains(name);
  };
  const std::set<std::string> inherited = inherit_coordinates(hierarchy, path, arrays, is_taken);
  std::list<ArrayMetadata> fields;
  add_fields(arrays, only, fields);
  const std::map<std::string, Json> of_bounds = bounds_attributes(arrays);
  const std::set<std::string> of_values = dims_of_values(arrays);
  // Can the last dimension of a character array be joined?
  const auto joins_characters = [&of_values](const ArrayMetadata& array) {
    return !array.shape.empty() && !of_values.contains(dimension_names(array).back());
  };
  std::set<std::string> named_coordinates;
  auto note_coordinates = [&](const Json& attributes) {
    const auto it = attributes.find("coordinates");
    if (it == attributes.end() || !it->is_string()) return;
    for (const std::string& name : split(it->get<std::string>(), ' '))
      if (!name.empty()) named_coordinates.insert(name);
  };
  note_coordinates(attributes_);
  for (const auto& [name, stored] : arrays) {
    if (!is_taken(name) && !inherited.contains(name)) continue;
    const auto own = std::make_shared<ArrayMetadata>(*stored);
    if (const auto missing = of_bounds.find(name); missing != of_bounds.end())
      for (const auto& [key, value] : missing->second.items())
        if (!own->attributes.contains(key)) own->attributes[key] = value;
    const ArrayMetadata& metadata = *own;
    Variable variable;
    variable.name = name;
    variable.metadata = own;
    variable.unsupported = metadata.unsupported;
    variable.dims = dimension_names(metadata);
    variable.shape = metadata.shape;
    variable.cf = raw_decoding(metadata);
    if (variable.unsupported.empty()) {
      try {
        if (metadata.type.is_variable())
          // Half: they are in memory as read and in numpy's form, beside labels.
          variable.strings = std::make_shared<const StringArray>(store, variable.metadata,
                                                                 max_lists(memory_limit_) / 2);
        else
          variable.array = std::make_shared<const Array>(store, variable.metadata);
        const bool characters = metadata.type.kind == Kind::bytes && metadata.type.itemsize == 1;
        variable.cf = cf_decoding(metadata, characters && joins_characters(metadata));
      } catch (const Error& error) {
        variable.unsupported = error.why();
        variable.array = nullptr;
        variable.strings = nullptr;
      }
    }
    if (variable.cf.joined_characters > 0) {
      variable.shape.resize(variable.shape.size() - 1);
      variable.dims.pop_back();
    }
    note_coordinates(metadata.attributes);
    for (const auto& [key, value] : metadata.attributes.items())
      if (key != "_ARRAY_DIMENSIONS" && !is_nczarr(key))
        append_member(variable.attributes, key, value);
    variables_.push_back(std::move(variable));
  }
  for (const Variable& variable : variables_)
    named_coordinates.insert(variable.dims.begin(), variable.dims.end());
  for (Variable& variable : variables_)
    variable.is_coordinate = named_coordinates.contains(variable.name);
  // xarray puts data variables before coordinates, and dimensions in the order they appear.
  std::stable_partition(variables_.begin(), variables_.end(),
                        [](const Variable& variable) { return !variable.is_coordinate; });
  separate_single_dims(variables_, more);
  std::map<std::string, std::pair<std::int64_t, std::string>> sizes;
  for (const Variable& variable : variables_)
    for (std::size_t d = 0; d < variable.dims.size(); ++d) {
      const auto [it, is_new] =
          sizes.try_emplace(variable.dims[d], variable.shape[d], variable.name);
      if (is_new) {
        dims_.emplace_back(variable.dims[d], variable.shape[d]);
      } else if (it->second.first != variable.shape[d]) {
        throw misfit(variable, d, it->second);
      }
    }
  repeated_dims_ = find_repeated_dims(variables_);
  for (Variable& coordinate :
       axis_coordinates(variables_, [&](const std::string& name) { return arrays.contains(name); }))
    variables_.push_back(std::move(coordinate));
}

Dataset::Dataset(Parts parts)
    : memory_limit_(parts.memory_limit),
      variables_(std::move(parts.variables)),
      dims_(std::move(parts.dims)),
      attributes_(std::move(parts.attributes)),
      indices_(std::move(parts.indices)),
      other_names_(std::move(parts.other_names)),
      repeated_dims_(std::move(parts.repeated_dims)),
      cache_(std::make_unique<Cache>()) {
  cache_->values = std::move(parts.values);
}

Dataset::~Dataset() = default;

const Variable* Dataset::find(const std::string& name) const {
  const auto it = std::find_if(variables_.begin(), variables_.end(),
                               [&](const Variable& variable) { return variable.name == name; });
  return it == variables_.end() ? nullptr : &*it;
}

const Variable& Dataset::variable(const std::string& name) const {
  if (const Variable* found = find(name)) return *found;
  if (const auto problem = problems_.find(name); problem != problems_.end())
    throw Error(ErrorCode::corrupt,
                fmt::format("the metadata of '{}' cannot be used: {}", name, problem->second));
  std::vector<std::string> names = other_names_;
  for (const Variable& variable : variables_) names.push_back(variable.name);
  throw Error(ErrorCode::not_found,
              fmt::format("no variable '{}'{}", name, nearest_or_all(name, names)));
}

std::int64_t Dataset::dim_size(const std::string& dim) const {
  std::vector<std::string> names;
  for (const auto& [name, size] : dims_) {
    if (name == dim) return size;
    names.push_back(name);
  }
  throw Error(ErrorCode::not_found,
              fmt::format("no dimension '{}'{}", dim, nearest_or_all(dim, names)));
}

const std::string& Dataset::original_dim(const std::string& dim) const {
  const std::string* original = &dim;
  for (auto found = repeated_dims_.find(dim); found != repeated_dims_.end();
       found = repeated_dims_.find(*original))
    original = &found->second;
  return *original;
}

bool Dataset::repeats_dim(const Variable& variable, const std::string& dim) const {
  return std::any_of(variable.dims.begin(), variable.dims.end(), [&](const std::string& other) {
    return other != dim && original_dim(other) == dim;
  });
}

const Variable* Dataset::index_of(const std::string& dim) const {
  const std::string& name = original_dim(dim);
  const Variable* variable = find(name);
  if (variable == nullptr || !variable->is_readable()) return nullptr;
  return variable->dims.size() == 1 && variable->dims.front() == name ? variable : nullptr;
}

const Dataset::Index& Dataset::index(const std::string& dim) const {
  const std::string& name = original_dim(dim);
  const Variable* variable = index_of(name);
  if (variable == nullptr) {
    const Variable* unread = find(name);
    const std::string why =
        unread != nullptr && !unread->unsupported.empty()
            ? fmt::format("the coordinate of dimension '{}' cannot be read ({})", dim,
                          unread->unsupported)
            : fmt::format("dimension '{}' has no coordinate", dim);
    throw Error(ErrorCode::not_found, why + "; use positions, as in '#0:#4'");
  }
  if (const auto other = indices_.find(name); other != indices_.end())
    return other->second->index(name);
  {
    const std::lock_guard lock(cache_->mutex);
    const auto it = cache_->values.find(name);
    if (it != cache_->values.end()) return it->second;
    if (const auto refused = cache_->refused.find(name); refused != cache_->refused.end())
      throw refused->second;
  }
  if (variable->axis == nullptr) check_labels(*variable, value_bytes(*variable));
  Index values;
  try {
    values = read_index(*variable);  // without the lock: it may take round trips
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_memory) throw;
    const std::lock_guard lock(cache_->mutex);
    throw cache_->refused.emplace(name, error).first->second;
  }
  check_labels(*variable, values.values.data.size());
  const std::lock_guard lock(cache_->mutex);
  return cache_->values.emplace(name, std::move(values)).first->second;
}

void Dataset::check_labels(const Variable& variable, std::uint64_t bytes) const {
  const std::lock_guard lock(cache_->mutex);
  if (cache_->bytes() + bytes <= max_lists(memory_limit_)) return;
  throw Error(ErrorCode::no_memory,
              fmt::format("the {} labels of '{}' take {} of memory, and labels get {} of {}; give "
                          "more with --memory, or use positions, as in '#0:#4'",
                          element_count(variable.shape), variable.name, format_size(bytes),
                          format_size(max_lists(memory_limit_)), format_size(memory_limit_)));
}

std::shared_ptr<const NdArray> Dataset::labels_at(const std::string& dim,
                                                  const Positions& positions) const {
  const NdArray& all = index(dim).values;
  if (positions.is_range() && positions.size() == all.shape[0])
    return {std::shared_ptr<void>(), &all};
  const Variable& variable = *index_of(dim);
  check_labels(variable, static_cast<std::uint64_t>(positions.size()) * all.type.itemsize);
  NdArray labels = take(all, positions);
  const std::lock_guard lock(cache_->mutex);
  auto& selections = cache_->selections[variable.name];
  std::erase_if(selections, [](const auto& each) { return each.expired(); });
  for (const auto& each : selections)
    if (const auto known = each.lock(); known != nullptr && are_equal(*known, labels)) return known;
  const auto made = std::make_shared<const NdArray>(std::move(labels));
  selections.push_back(made);
  return made;
}

std::uint64_t Dataset::held_labels(std::set<const Dataset*>& counted) const {
  if (!counted.insert(this).second) return 0;
  std::uint64_t bytes = 0;
  for (const auto& [dim, dataset] : indices_) bytes += dataset->held_labels(counted);
  const std::lock_guard lock(cache_->mutex);
  return bytes + cache_->bytes();
}

void Dataset::load_index_values() const {
  std::vector<std::thread> readers;
  std::uint64_t bytes = 0;
  const auto read = [this](const std::string& name) {
    try {
      index_values(name);
    } catch (const std::exception&) {
      // A caller that needs the values reads them again and gets the error.
    }
  };
  try {
    for (const auto& [dim, size] : dims_)
      if (original_dim(dim) == dim && index_of(dim) != nullptr && readers.size() < 64 &&
          value_bytes(*index_of(dim)) <= kFreeMetadata - bytes) {
        bytes += value_bytes(*index_of(dim));
        readers.emplace_back(read, dim);
      }
  } catch (const std::exception&) {
    // The system refuses another thread.
  }
  // Dimensions without a thread, and those of many labels, are read when needed.
  for (std::thread& reader : readers) reader.join();
}

Dims Variable::own_shape() const {
  if (parts.empty()) return array != nullptr ? array->shape() : shape;
  Dims result = parts[0]->shape;
  result[concat_dim] = concat->parts[0].positions.size();
  return result;
}

Variable Variable::part_of(std::size_t number) const {
  const Variable& own = *parts[number];
  Variable result = *this;
  result.parts.clear();
  result.part = static_cast<int>(number);
  result.array = own.array;
  result.metadata = own.metadata;
  result.strings = own.strings;
  result.cf = own.cf;
  result.attributes = own.attributes;
  return result;
}

}  // namespace batchfs
