#include "engine/dataset/dataset.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/base/utf8.h"
#include "engine/dataset/axis_coordinates.h"
#include "engine/dataset/converter.h"
#include "engine/dataset/fields.h"

namespace batchfs {

struct Dataset::Cache {
  std::mutex mutex;
  std::map<std::string, Index> values;
};

std::vector<std::string> dimension_names(const ArrayMetadata& array) {
  const std::size_t rank = array.shape.size();
  std::vector<std::string> names(rank);
  for (std::size_t d = 0; d < rank; ++d) names[d] = fmt::format("dim_{}", d);
  auto take = [&](const Json& list) {
    if (!list.is_array() || list.size() != rank) return false;
    for (std::size_t d = 0; d < rank; ++d)
      if (!list[d].is_string()) return false;
    for (std::size_t d = 0; d < rank; ++d) names[d] = list[d].get<std::string>();
    return true;
  };
  bool named = false;
  for (std::size_t d = 0; d < array.dimension_names.size(); ++d)
    if (array.dimension_names[d]) {
      names[d] = *array.dimension_names[d];
      named = true;
    }
  if (named) return names;
  if (const auto it = array.attributes.find("_ARRAY_DIMENSIONS");
      it != array.attributes.end() && take(*it))
    return names;
  // NCZarr: references like "/time".
  const Json* references = nullptr;
  for (const Json* holder : {&array.document, &array.attributes})
    for (const char* key : {"_NCZARR_ARRAY", "_nczarr_array"})
      if (const auto it = holder->find(key); it != holder->end() && it->is_object()) {
        for (const char* name : {"dimrefs", "dimension_references"})
          if (const auto refs = it->find(name); refs != it->end()) references = &*refs;
      }
  if (references != nullptr && take(*references)) {
    for (std::string& name : names) name = name.substr(name.rfind('/') + 1);
  } else if (array.axes.size() == rank) {
    for (std::size_t d = 0; d < rank; ++d) names[d] = array.axes[d].name;
  }
  return names;
}

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
    if (!dims.empty() && metadata->type.kind == Kind::bytes &&
        std::find(dims.begin(), dims.end() - 1, dims.back()) == dims.end() - 1)
      dims.pop_back();
    result.insert(dims.begin(), dims.end());
  }
  return result;
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
    if (only && !only->contains(name) && !more.contains(name)) continue;
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
          variable.strings = std::make_shared<const StringArray>(store, variable.metadata);
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
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("dimension '{}' has length {} in '{}' and {} in '{}'", variable.dims[d],
                        it->second.first, it->second.second, variable.shape[d], variable.name));
      }
    }
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

const Variable* Dataset::index_of(const std::string& dim) const {
  const Variable* variable = find(dim);
  if (variable == nullptr || !variable->is_readable()) return nullptr;
  return variable->dims.size() == 1 && variable->dims.front() == dim ? variable : nullptr;
}

const Dataset::Index& Dataset::index(const std::string& dim) const {
  const Variable* variable = index_of(dim);
  if (variable == nullptr) {
    const Variable* unread = find(dim);
    const std::string why =
        unread != nullptr && !unread->unsupported.empty()
            ? fmt::format("the coordinate of dimension '{}' cannot be read ({})", dim,
                          unread->unsupported)
            : fmt::format("dimension '{}' has no coordinate", dim);
    throw Error(ErrorCode::not_found, why + "; use positions, as in '#0:#4'");
  }
  if (const auto other = indices_.find(dim); other != indices_.end())
    return other->second->index(dim);
  {
    const std::lock_guard lock(cache_->mutex);
    const auto it = cache_->values.find(dim);
    if (it != cache_->values.end()) return it->second;
  }
  Index values = read_index(*variable);  // without the lock: it may take round trips
  const std::lock_guard lock(cache_->mutex);
  return cache_->values.emplace(dim, std::move(values)).first->second;
}

void Dataset::load_index_values() const {
  std::vector<std::thread> readers;
  const auto read = [this](const std::string& name) {
    try {
      index_values(name);
    } catch (const std::exception&) {
      // It is read again, and refused, by who needs it.
    }
  };
  try {
    for (const auto& [dim, size] : dims_)
      if (index_of(dim) != nullptr && readers.size() < 64) readers.emplace_back(read, dim);
  } catch (const std::exception&) {
    // There is no room for another thread.
  }
  // Those without a thread are read when they are needed.
  for (std::thread& reader : readers) reader.join();
}

namespace {

/// Strings as numpy's fixed-length ones, in UCS-4.
NdArray text_array(const std::vector<std::string>& strings, const Dims& shape,
                   const std::string& name) {
  constexpr std::uint64_t kMaxStringBytes = UINT64_C(1) << 30;
  std::vector<std::u32string> texts;
  std::size_t longest = 1;
  for (const std::string& string : strings)
    longest = std::max(longest, texts.emplace_back(code_points(string)).size());
  if (longest * 4 * std::max<std::size_t>(strings.size(), 1) > kMaxStringBytes)
    throw Error(ErrorCode::not_supported,
                fmt::format("{} strings, the longest of {} characters, are more than 1 GB",
                            strings.size(), longest),
                name);
  NdArray result{make_type(Kind::unicode, static_cast<std::uint32_t>(4 * longest)), shape,
                 Buffer(strings.size() * longest * 4)};
  if (result.data.size() > 0) std::memset(result.data.data(), 0, result.data.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (!texts[i].empty())
      std::memcpy(result.data.data() + i * longest * 4, texts[i].data(), texts[i].size() * 4);
  return result;
}

/// Bytes of any length as numpy's fixed-length ones.
NdArray bytes_array(const std::vector<std::string>& strings, const Dims& shape,
                    const std::string& name) {
  constexpr std::uint64_t kMaxBytes = UINT64_C(1) << 30;
  std::size_t longest = 1;
  for (const std::string& string : strings) longest = std::max(longest, string.size());
  if (longest * std::max<std::size_t>(strings.size(), 1) > kMaxBytes)
    throw Error(ErrorCode::not_supported,
                fmt::format("{} byte strings, the longest of {} bytes, are more than 1 GB",
                            strings.size(), longest),
                name);
  NdArray result{make_type(Kind::bytes, static_cast<std::uint32_t>(longest)), shape,
                 Buffer(strings.size() * longest)};
  if (result.data.size() > 0) std::memset(result.data.data(), 0, result.data.size());
  for (std::size_t i = 0; i < strings.size(); ++i)
    if (!strings[i].empty())
      std::memcpy(result.data.data() + i * longest, strings[i].data(), strings[i].size());
  return result;
}

/// Elements as stored, in native byte order.
NdArray read_stored(const Array& array, const Box& box) {
  const Dims shape = box.shape;
  NdArray stored{array.type(), shape,
                 Buffer(static_cast<std::size_t>(element_count(shape)) * array.type().itemsize)};
  stored.type.big_endian = false;
  array.read(box, stored.data.data());
  return stored;
}

NdArray decoded(const NdArray& stored, const CfDecoding& cf) {
  NdArray result{
      cf.decoded, stored.shape,
      Buffer(static_cast<std::size_t>(element_count(stored.shape)) * cf.decoded.itemsize)};
  Converter(cf, cf.decoded)
      .convert(stored.shape, stored.data.data(), c_strides(stored.shape, stored.type.itemsize),
               result.data.data(), c_strides(result.shape, result.type.itemsize));
  return result;
}

/// Times that datetime64[ns] does not hold are left as numbers.
bool are_far_times(const CfDecoding& cf, const Error& error) {
  return cf.time == CfDecoding::Time::datetime && error.code() == ErrorCode::not_supported;
}

}  // namespace

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

namespace {

/// Values of all parts, each at its positions.
NdArray read_parts(const Variable& variable, Decode decode) {
  NdArray result;
  for (std::size_t p = 0; p < variable.parts.size(); ++p) {
    const NdArray part = read_variable(*variable.parts[p], decode);
    const std::int64_t itemsize = part.type.itemsize;
    if (p == 0) {
      result.type = part.type;
      result.shape = variable.own_shape();
      result.data = Buffer(static_cast<std::size_t>(element_count(result.shape) * itemsize));
    } else if (!(part.type == result.type)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} in '{}' and {} in '{}'", result.type.name(),
                              variable.concat->parts[0].name, part.type.name(),
                              variable.concat->parts[p].name),
                  variable.name);
    }
    std::int64_t outer = 1, inner = itemsize;
    for (std::size_t d = 0; d < variable.concat_dim; ++d) outer *= result.shape[d];
    for (std::size_t d = variable.concat_dim + 1; d < result.shape.size(); ++d)
      inner *= result.shape[d];
    const Positions& positions = variable.concat->parts[p].positions;
    const std::int64_t from = part.shape[variable.concat_dim], to = positions.size();
    const auto [first, end] = positions.held();
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = first; i < end; ++i)
        if (positions[i] != Positions::kNone)
          std::memcpy(result.data.data() + (o * to + i) * inner,
                      part.data.data() + (o * from + positions[i]) * inner,
                      static_cast<std::size_t>(inner));
  }
  return result;
}

}  // namespace

NdArray read_variable(const Variable& variable, Decode decode) {
  if (!variable.is_readable())
    throw Error(ErrorCode::not_supported, "values cannot be read: " + variable.unsupported,
                variable.name);
  if (variable.is_concatenated()) return read_parts(variable, decode);
  if (variable.strings != nullptr) {
    const bool is_text = variable.metadata->type.kind == Kind::variable_string;
    return (is_text ? text_array : bytes_array)(variable.strings->read(), variable.shape,
                                                variable.name);
  }
  if (variable.axis != nullptr && variable.axis->labels != nullptr)
    return text_array(*variable.axis->labels, variable.shape, variable.name);
  if (variable.axis != nullptr) return axis_values(variable);
  NdArray stored = read_stored(*variable.array, whole_box(variable.array->shape()));
  if (decode == Decode::raw) return stored;
  const CfDecoding& cf = variable.cf;
  if (cf.joined_characters > 0 || cf.is_identity()) {
    stored.type = cf.decoded;
    stored.shape = variable.shape;
    return stored;
  }
  try {
    return decoded(stored, cf);
  } catch (Error& error) {
    throw error.at(variable.name);
  }
}

Dataset::Index read_index(const Variable& variable) {
  if (variable.array == nullptr || variable.cf.time != CfDecoding::Time::datetime ||
      variable.is_concatenated())
    return {read_variable(variable), variable.cf};
  const NdArray stored = read_stored(*variable.array, whole_box(variable.array->shape()));
  try {
    return {decoded(stored, variable.cf), variable.cf};
  } catch (const Error& error) {
    if (!are_far_times(variable.cf, error)) throw;
  }
  CfDecoding numbers = cf_decoding(*variable.metadata, false, Times::numbers);
  return {decoded(stored, numbers), numbers};
}

CfDecoding settled_decoding(const Variable& variable) {
  if (variable.array == nullptr || variable.cf.time != CfDecoding::Time::datetime ||
      element_count(variable.shape) == 0)
    return variable.cf;
  const Dims shape = variable.array->shape();
  Box box{Dims(shape.size(), 0), Dims(shape.size(), 1)};
  for (int end = 0; end < 2; ++end) {
    NdArray stored;
    try {
      stored = read_stored(*variable.array, box);
    } catch (const Error&) {
      return variable.cf;  // who reads the values says so
    }
    try {
      decoded(stored, variable.cf);
    } catch (const Error& error) {
      if (!are_far_times(variable.cf, error)) throw;
      return cf_decoding(*variable.metadata, false, Times::numbers);
    }
    for (std::size_t d = 0; d < shape.size(); ++d) box.start[d] = shape[d] - 1;
  }
  return variable.cf;
}

}  // namespace batchfs
