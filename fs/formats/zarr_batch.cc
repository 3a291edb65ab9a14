#include "fs/formats/zarr_batch.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/base/json_text.h"
#include "engine/base/utf8.h"
#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/describe/schema.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

Json shape_json(const Dims& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

std::string typestr(const DataType& type) {
  const std::string descr = type.npy_descr();  // quoted
  return descr.substr(1, descr.size() - 2);
}

/// Appends <name>/.zarray and <name>/.zattrs, and their entries in the consolidated metadata.
void add_array(std::vector<ZarrBatchFile>& files, Json& metadata, const std::string& name,
               const std::string& dtype, const Dims& shape, const std::vector<std::string>& dims,
               Json attributes) {
  Dims chunks = shape;
  for (std::int64_t& n : chunks) n = std::max<std::int64_t>(n, 1);
  attributes["_ARRAY_DIMENSIONS"] = dims;
  const Json array = {
      {"zarr_format", 2}, {"shape", shape_json(shape)}, {"chunks", shape_json(chunks)},
      {"dtype", dtype},   {"compressor", nullptr},      {"fill_value", nullptr},
      {"order", "C"},     {"filters", nullptr}};
  metadata[name + "/.zarray"] = array;
  metadata[name + "/.zattrs"] = attributes;
  files.push_back({name + "/.zarray", json_text(array) + "\n", {}});
  files.push_back({name + "/.zattrs", python_json_text(attributes) + "\n", {}});
}

/// Times of the usual units are stored as CF counts, which every reader decodes; the dtype of the
/// rest is their own.
std::string stored_type(const DataType& type, Json& attributes) {
  if (type.kind == Kind::datetime || type.kind == Kind::timedelta) {
    static constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
        {"s", "seconds"}, {"ms", "milliseconds"}, {"us", "microseconds"}, {"ns", "nanoseconds"}};
    for (const auto& [unit, name] : kUnits)
      if (type.unit == unit && type.multiplier == 1) {
        attributes["units"] =
            std::string(name) + (type.kind == Kind::datetime ? " since 1970-01-01" : "");
        if (type.kind == Kind::datetime)
          attributes["calendar"] = "proleptic_gregorian";
        else
          attributes["dtype"] = "timedelta64[" + type.unit + "]";
        return "<i8";
      }
    return typestr(type);  // Zarr's own time types hold every unit
  }
  return typestr(type);
}

/// A dimension of a tensor: its length, and what lies along it if it is a stack.
struct Extent {
  std::int64_t length = 0;
  std::vector<std::string> channels;
  bool operator==(const Extent&) const = default;
};

Extent extent(const TensorSpec& tensor, const Dims& shape, std::size_t d) {
  return {shape[d],
          static_cast<int>(d) == tensor.stack_axis ? tensor.channels : std::vector<std::string>{}};
}

/// The dimensions of each tensor. A name has one length, and one coordinate, in a dataset of
/// xarray: where tensors disagree, as for offsets or stacks, each has a dimension of its own,
/// "x_time", but for those that agree with a coordinate.
std::vector<std::vector<std::string>> dims_of(const View& view, const std::vector<Dims>& shapes,
                                              const std::vector<BatchCoordinate>& coordinates) {
  const Extent kNone{-1, {}};
  const auto& tensors = view.tensors();
  std::map<std::string, Extent> lengths;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (std::size_t d = 0; d < shapes[t].size(); ++d) {
      const Extent own = extent(tensors[t], shapes[t], d);
      const auto [known, is_first] = lengths.emplace(tensors[t].dims[d], own);
      if (!is_first && !(known->second == own)) known->second = kNone;
    }
  for (const BatchCoordinate& coordinate : coordinates)
    if (coordinate.dims == std::vector{coordinate.name})
      lengths[coordinate.name] = {coordinate.count, {}};
  auto is_taken = [&](const std::string& name) {
    return lengths.contains(name) ||
           std::any_of(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& tensor) { return tensor.name == name; }) ||
           std::any_of(coordinates.begin(), coordinates.end(),
                       [&](const BatchCoordinate& c) { return c.name == name; });
  };
  std::vector<std::vector<std::string>> result;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    result.push_back(tensors[t].dims);
    for (std::size_t d = 0; d < shapes[t].size(); ++d) {
      const Extent own = extent(tensors[t], shapes[t], d);
      if (lengths.at(tensors[t].dims[d]) == own) continue;
      std::string name = tensors[t].name + "_" + tensors[t].dims[d];
      while (is_taken(name)) name += '_';
      lengths.emplace(name, own);
      result.back()[d] = name;
    }
  }
  return result;
}

/// The names of a stack's channels, as numpy lays strings out.
NdArray channel_array(const std::vector<std::string>& channels) {
  std::vector<std::u32string> texts;
  std::size_t longest = 1;
  for (const std::string& channel : channels) {
    texts.push_back(code_points(channel));
    longest = std::max(longest, texts.back().size());
  }
  const DataType type = make_type(Kind::unicode, static_cast<std::uint32_t>(4 * longest));
  NdArray array{
      type, {static_cast<std::int64_t>(texts.size())}, Buffer(texts.size() * 4 * longest)};
  std::fill_n(array.data.data(), array.data.size(), std::byte{0});
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::memcpy(array.data.data() + i * 4 * longest, texts[i].data(), 4 * texts[i].size());
  return array;
}

/// The coordinates of stacks, by the dimensions that tensors have here.
std::vector<BatchCoordinate> channel_coordinates(const View& view,
                                                 const std::vector<std::vector<std::string>>& dims,
                                                 const std::vector<BatchCoordinate>& others) {
  std::vector<BatchCoordinate> result;
  for (std::size_t t = 0; t < dims.size(); ++t) {
    const TensorSpec& tensor = view.tensors()[t];
    if (tensor.channels.empty()) continue;
    const std::string& name = dims[t][static_cast<std::size_t>(tensor.stack_axis)];
    const auto is_it = [&](const BatchCoordinate& c) { return c.name == name; };
    if (std::any_of(result.begin(), result.end(), is_it) ||
        std::any_of(others.begin(), others.end(), is_it))
      continue;
    result.push_back(whole_coordinate(channel_array(tensor.channels)));
    result.back().name = name;
    result.back().dims = {name};
  }
  return result;
}

/// The coordinates of dimensions that are renamed here since tensors are coarsened in
/// different ways.
std::vector<BatchCoordinate> coarse_coordinates(const View& view,
                                                const std::vector<std::vector<std::string>>& dims,
                                                const std::vector<BatchCoordinate>& others) {
  std::vector<BatchCoordinate> result;
  const auto& tensors = view.tensors();
  if (std::all_of(tensors.begin(), tensors.end(),
                  [](const TensorSpec& tensor) { return tensor.coarsen.empty(); }))
    return result;
  for (std::size_t t = 0; t < dims.size(); ++t)
    for (std::size_t d = 1; d < dims[t].size(); ++d) {
      const std::string& name = dims[t][d];
      const auto is_it = [&](const BatchCoordinate& c) { return c.name == name; };
      if (name == tensors[t].dims[d] || static_cast<int>(d) == tensors[t].stack_axis ||
          std::any_of(result.begin(), result.end(), is_it) ||
          std::any_of(others.begin(), others.end(), is_it))
        continue;
      if (auto own = tensor_coordinate(view, tensors[t], tensors[t].dims[d])) {
        own->name = name;
        own->dims = {name};
        result.push_back(std::move(*own));
      }
    }
  return result;
}

}  // namespace

std::string zarr_single_chunk(std::size_t dims) {
  std::string name = "0";
  for (std::size_t d = 1; d < dims; ++d) name += ".0";
  return name;
}

std::string ZarrBatchFile::contents() const {
  if (!values) return text;
  const NdArray all = values->values();
  return {reinterpret_cast<const char*>(all.data.data()), all.data.size()};
}

std::vector<ZarrBatchFile> zarr_batch_files(const View& view, std::int64_t epoch,
                                            std::int64_t batch) {
  std::vector<ZarrBatchFile> files;
  Json metadata = Json::object();
  std::string coordinate_names;
  const std::vector<Dims> shapes = view.shapes(batch);
  auto coordinates = batch_coordinates(view, epoch, batch);
  const std::vector<std::vector<std::string>> dims = dims_of(view, shapes, coordinates);
  for (const auto& more : {channel_coordinates, coarse_coordinates})
    for (BatchCoordinate& coordinate : more(view, dims, coordinates))
      coordinates.push_back(std::move(coordinate));
  for (BatchCoordinate& coordinate : coordinates) {
    Json attributes = coordinate.attributes;
    const std::string dtype = stored_type(coordinate.type, attributes);
    add_array(files, metadata, coordinate.name, dtype, {coordinate.count}, coordinate.dims,
              attributes);
    // Only coordinates that are not index coordinates have to be named.
    if (coordinate.dims.front() != coordinate.name)
      coordinate_names += (coordinate_names.empty() ? "" : " ") + coordinate.name;
    files.push_back({coordinate.name + "/" + zarr_single_chunk(1), "", std::move(coordinate)});
  }
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    const TensorSpec& tensor = view.tensors()[t];
    Json attributes = attributes_of(view.tensor_set(), static_cast<std::uint32_t>(t));
    const std::string dtype = stored_type(tensor.type, attributes);
    if (!coordinate_names.empty()) attributes["coordinates"] = coordinate_names;
    add_array(files, metadata, tensor.name, dtype, shapes[t], dims[t], attributes);
  }
  const Json group = {{"zarr_format", 2}};
  const Json attributes = Json::object();
  metadata[".zgroup"] = group;
  metadata[".zattrs"] = attributes;
  files.push_back({".zgroup", json_text(group) + "\n", {}});
  files.push_back({".zattrs", json_text(attributes) + "\n", {}});
  files.push_back(
      {".zmetadata",
       python_json_text(Json{{"metadata", std::move(metadata)}, {"zarr_consolidated_format", 1}}) +
           "\n",
       {}});
  return files;
}

}  // namespace batchfs
