#include "engine/dataset/dataset.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/converter.h"

namespace batchfs {

struct Dataset::Cache {
  std::mutex mutex;
  std::map<std::string, NdArray> values;
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
  if (const auto it = array.attributes.find("_ARRAY_DIMENSIONS"); it != array.attributes.end() && take(*it))
    return names;
  // NCZarr: references like "/time".
  const Json* references = nullptr;
  for (const Json* holder : {&array.document, &array.attributes})
    for (const char* key : {"_NCZARR_ARRAY", "_nczarr_array"})
      if (const auto it = holder->find(key); it != holder->end() && it->is_object()) {
        for (const char* name : {"dimrefs", "dimension_references"})
          if (const auto refs = it->find(name); refs != it->end()) references = &*refs;
      }
  if (references != nullptr && take(*references))
    for (std::string& name : names) name = name.substr(name.rfind('/') + 1);
  return names;
}

Dataset::Dataset(std::shared_ptr<Store> store, const Hierarchy& hierarchy, const std::string& path)
    : cache_(std::make_unique<Cache>()) {
  if (const auto group = hierarchy.groups.find(path); group != hierarchy.groups.end())
    attributes_ = group->second.attributes;
  std::set<std::string> named_coordinates;
  auto note_coordinates = [&](const Json& attributes) {
    const auto it = attributes.find("coordinates");
    if (it == attributes.end() || !it->is_string()) return;
    for (const std::string& name : split(it->get<std::string>(), ' '))
      if (!name.empty()) named_coordinates.insert(name);
  };
  note_coordinates(attributes_);
  for (const auto& [array_path, metadata] : hierarchy.arrays) {
    std::string name = array_path;
    if (array_path == path) {
      name = path.empty() ? "values" : path.substr(path.rfind('/') + 1);
    } else {
      if (!path.empty()) {
        if (!array_path.starts_with(path + "/")) continue;
        name = array_path.substr(path.size() + 1);
      }
      if (name.find('/') != std::string::npos) continue;  // of a group below
    }
    Variable variable;
    variable.name = name;
    variable.metadata = std::make_shared<const ArrayMetadata>(metadata);
    variable.unsupported = metadata.unsupported;
    variable.dims = dimension_names(metadata);
    variable.shape = metadata.shape;
    variable.cf = raw_decoding(metadata);
    if (variable.unsupported.empty()) {
      try {
        variable.array = std::make_shared<const Array>(store, variable.metadata);
        variable.cf = cf_decoding(metadata, variable.dims);
      } catch (const Error& error) {
        variable.unsupported = error.why();
        variable.array = nullptr;
      }
    }
    if (variable.cf.joined_characters > 0) {
      variable.shape.resize(variable.shape.size() - 1);
      variable.dims.pop_back();
    }
    note_coordinates(metadata.attributes);
    for (const auto& [key, value] : metadata.attributes.items())
      if (key != "_ARRAY_DIMENSIONS" && !key.starts_with("_nc") && !key.starts_with("_NC"))
        variable.attributes[key] = value;
    variables_.push_back(std::move(variable));
  }
  for (Variable& variable : variables_)
    variable.is_coordinate = named_coordinates.contains(variable.name) ||
                             (variable.dims.size() == 1 && variable.dims.front() == variable.name);
  // xarray puts data variables before coordinates, and dimensions in the order they appear.
  std::stable_partition(variables_.begin(), variables_.end(),
                        [](const Variable& variable) { return !variable.is_coordinate; });
  std::map<std::string, std::pair<std::int64_t, std::string>> sizes;
  for (const Variable& variable : variables_)
    for (std::size_t d = 0; d < variable.dims.size(); ++d) {
      const auto [it, is_new] = sizes.try_emplace(variable.dims[d], variable.shape[d], variable.name);
      if (is_new) {
        dims_.emplace_back(variable.dims[d], variable.shape[d]);
      } else if (it->second.first != variable.shape[d]) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("dimension '{}' has length {} in '{}' and {} in '{}'", variable.dims[d],
                                it->second.first, it->second.second, variable.shape[d], variable.name));
      }
    }
}

Dataset::~Dataset() = default;

const Variable* Dataset::find(const std::string& name) const {
  const auto it = std::find_if(variables_.begin(), variables_.end(),
                               [&](const Variable& variable) { return variable.name == name; });
  return it == variables_.end() ? nullptr : &*it;
}

const Variable& Dataset::variable(const std::string& name) const {
  if (const Variable* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const Variable& variable : variables_) names.push_back(variable.name);
  throw Error(ErrorCode::not_found, fmt::format("no variable '{}'{}", name, did_you_mean(name, names)));
}

std::int64_t Dataset::dim_size(const std::string& dim) const {
  std::vector<std::string> names;
  for (const auto& [name, size] : dims_) {
    if (name == dim) return size;
    names.push_back(name);
  }
  const std::string hint = did_you_mean(dim, names);
  throw Error(ErrorCode::not_found,
              fmt::format("no dimension '{}'{}", dim, hint.empty() ? "; there are " + join(names, ", ") : hint));
}

const Variable* Dataset::index_of(const std::string& dim) const {
  const Variable* variable = find(dim);
  if (variable == nullptr || variable->array == nullptr) return nullptr;
  return variable->dims.size() == 1 && variable->dims.front() == dim ? variable : nullptr;
}

const NdArray& Dataset::index_values(const std::string& dim) const {
  const Variable* variable = index_of(dim);
  if (variable == nullptr)
    throw Error(ErrorCode::not_found,
                fmt::format("dimension '{}' has no coordinate; use positions, as in '#0:#4'", dim));
  {
    const std::lock_guard lock(cache_->mutex);
    const auto it = cache_->values.find(dim);
    if (it != cache_->values.end()) return it->second;
  }
  NdArray values = read_variable(*variable);  // without the lock: it may take round trips
  const std::lock_guard lock(cache_->mutex);
  return cache_->values.emplace(dim, std::move(values)).first->second;
}

void Dataset::load_index_values() const {
  std::vector<std::thread> readers;
  for (const auto& [dim, size] : dims_)
    if (index_of(dim) != nullptr && readers.size() < 64)  // more are read when they are needed
      readers.emplace_back([this, name = dim] {
        try {
          index_values(name);
        } catch (const std::exception&) {
          // It is read again, and refused, by who needs it.
        }
      });
  for (std::thread& reader : readers) reader.join();
}

NdArray read_variable(const Variable& variable, Decode decode) {
  if (variable.array == nullptr)
    throw Error(ErrorCode::not_supported, "values cannot be read: " + variable.unsupported, variable.name);
  const Array& array = *variable.array;
  const auto elements = static_cast<std::size_t>(element_count(array.shape()));
  NdArray stored{array.type(), array.shape(), Buffer(elements * array.type().itemsize)};
  stored.type.big_endian = false;
  array.read(whole_box(array.shape()), stored.data.data());
  if (decode == Decode::raw) return stored;
  const CfDecoding& cf = variable.cf;
  if (cf.joined_characters > 0 || cf.is_identity()) {
    stored.type = cf.decoded;
    stored.shape = variable.shape;
    return stored;
  }
  NdArray result{cf.decoded, variable.shape, Buffer(elements * cf.decoded.itemsize)};
  try {
    Converter(cf, cf.decoded)
        .convert(stored.shape, stored.data.data(), c_strides(stored.shape, stored.type.itemsize),
                 result.data.data(), c_strides(result.shape, result.type.itemsize));
  } catch (Error& error) {
    throw error.at(variable.name);
  }
  return result;
}

}  // namespace batchfs
