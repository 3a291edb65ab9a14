#include "engine/write/prediction/prediction_documents.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/store/fingerprint.h"
#include "engine/write/output_metadata.h"
#include "engine/write/region_copy.h"
#include "engine/write/run_identity.h"
#include "engine/write/string_copy.h"
#include "engine/write/type_text.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

Json list(const Dims& dims) { return Json(std::vector<std::int64_t>(dims.begin(), dims.end())); }

/// A description for make_output_array(), which sets chunks and codecs.
ArrayMetadata described(const std::string& name, const Dims& shape, const DataType& type, Json fill,
                        const std::vector<std::string>& dims, const Json& attributes) {
  Dims chunk = shape;
  for (std::int64_t& length : chunk) length = std::max<std::int64_t>(1, length);
  const Json first = type.is_variable()
                         ? Json{{"name", "vlen-utf8"}}
                         : Json{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
  return parse_array_v3(
      name,
      {{"zarr_format", 3},
       {"node_type", "array"},
       {"shape", list(shape)},
       {"data_type", v3_data_type(type)},
       {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", list(chunk)}}}}},
       {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
       {"fill_value", std::move(fill)},
       {"codecs", Json::array({first})},
       {"attributes", attributes},
       {"dimension_names", dims}},
      join_path(name, "zarr.json"));
}

OutputArray array_of(const Placement& placement, const Compression& compression) {
  const DataType& type = placement.type();
  Json attributes = placement.array().attributes;
  if (!attributes.is_object()) attributes = Json::object();
  attributes.erase("_FillValue");
  // xarray masks this value: elements that no sample has.
  if (type.kind == Kind::floating)
    attributes["_FillValue"] = fill_attribute(type, placement.fill());
  std::vector<std::string> dims;
  for (const PredictedAxis& axis : placement.array().axes) dims.push_back(axis.name);
  OutputArray made =
      make_output_array(described(placement.name(), placement.shape(), type,
                                  v3_fill_value(type, placement.fill()), dims, attributes),
                        placement.name(), 3, placement.chunks(), compression);
  made.writes_fill = true;  // an object that exists is done
  return made;
}

bool same_labels(const CoordinateLabels& a, const CoordinateLabels& b) {
  return a.type == b.type && a.values == b.values && a.strings == b.strings &&
         json_text(a.attributes, -1) == json_text(b.attributes, -1);
}

/// Attributes may hold NaN, which equals nothing.
std::string digest_of(const Json& value) { return fingerprint(json_text(value, -1)); }

}  // namespace

PredictionDocuments::PredictionDocuments(const std::vector<Placement>& placements,
                                         const Compression& compression) {
  for (const Placement& placement : placements) {
    for (const OutputArray& other : arrays_)
      if (other.path == placement.name())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("two tensors have values for '{}'; pass tensor= to name one of "
                                "them, or name=",
                                placement.name()));
    arrays_.push_back(array_of(placement, compression));
  }
  for (const Placement& placement : placements)
    for (const PredictedAxis& axis : placement.array().axes)
      add_coordinate(placement.array(), axis);
}

void PredictionDocuments::add_coordinate(const PredictedArray& array, const PredictedAxis& axis) {
  const auto [length, is_new] = lengths_.try_emplace(axis.name, axis.length);
  const auto found = std::find_if(coordinates_.begin(), coordinates_.end(),
                                  [&](const auto& one) { return one.array.path == axis.name; });
  const bool is_known = found != coordinates_.end();
  const bool differs =
      length->second != axis.length ||
      (is_known && axis.labels != nullptr && !same_labels(*found->labels, *axis.labels));
  if (differs)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' has other positions along '{}' than the arrays before it: create "
                            "an output for each of the tensors",
                            array.name, axis.name));
  const bool is_array = std::any_of(arrays_.begin(), arrays_.end(),
                                    [&](const OutputArray& one) { return one.path == axis.name; });
  if (axis.labels == nullptr || is_known || is_array) return;
  if (axis.name.empty() || axis.name.find('/') != std::string::npos || axis.name.starts_with("."))
    return;  // no name of an array
  const CoordinateLabels& labels = *axis.labels;
  const Dims shape{axis.length};
  const Json fill = labels.type.is_variable()
                        ? Json("")
                        : v3_fill_value(labels.type, std::vector<std::byte>(labels.type.itemsize));
  const OutputChunks chunks{{std::max<std::int64_t>(1, axis.length)},
                            {std::max<std::int64_t>(1, axis.length)}};
  OutputArray made = make_output_array(
      described(axis.name, shape, labels.type, fill, {axis.name}, labels.attributes), axis.name, 3,
      chunks, Compression{});
  made.writes_fill = true;
  coordinates_.push_back({std::move(made), axis.labels});
}

Json PredictionDocuments::identity() const {
  Json arrays = Json::object();
  for (const OutputArray& array : arrays_) {
    Json document = array.document;
    document["attributes"] = digest_of(document["attributes"]);
    arrays[array.path] = std::move(document);
  }
  std::string axes;
  for (const auto& [name, length] : lengths_) axes += fmt::format("{} {}\n", name, length);
  for (const Coordinate& one : coordinates_) {
    axes += digest_of(one.array.document) + "\n";
    axes.append(reinterpret_cast<const char*>(one.labels->values.data()),
                one.labels->values.size());
    axes += encode_strings(one.labels->strings);
  }
  return {{"arrays", std::move(arrays)}, {"coordinates", fingerprint(axes)}};
}

void PredictionDocuments::put_object(std::size_t array, const Placement& placement,
                                     std::int64_t number, const std::byte* values,
                                     OutputStore& output) const {
  ObjectWriter writer(arrays_[array], output, placement.region(number));
  for (std::size_t item = 0; item < writer.items(); ++item) writer.write(item, values);
}

void PredictionDocuments::put_coordinate(const Coordinate& coordinate, OutputStore& output) const {
  const CoordinateLabels& labels = *coordinate.labels;
  if (labels.size() == 0) return;
  if (!labels.type.is_variable()) {
    ObjectWriter writer(coordinate.array, output, whole_box(coordinate.array.metadata->shape));
    for (std::size_t item = 0; item < writer.items(); ++item)
      writer.write(item, labels.values.data());
    return;
  }
  const std::string bytes = encode_strings(labels.strings);
  const Buffer encoded = compress(coordinate.array.compression, 1, std::as_bytes(std::span(bytes)));
  const std::span<const std::byte> part = encoded.span();
  output.put(join_path(coordinate.array.path, "c/0"), {&part, 1});
}

void PredictionDocuments::put_rest(OutputStore& output) const {
  std::vector<const OutputArray*> all;
  for (const OutputArray& array : arrays_) all.push_back(&array);
  for (const Coordinate& one : coordinates_) {
    put_coordinate(one, output);
    all.push_back(&one.array);
  }
  put_metadata(output, 3, all, Hierarchy{}, "");
}

}  // namespace batchfs
