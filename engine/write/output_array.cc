#include "engine/write/output_array.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/codec/sharding.h"
#include "engine/dataset/dataset.h"
#include "engine/write/type_text.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

constexpr const char *kDimensionKey = "_ARRAY_DIMENSIONS", *kFillKey = "_FillValue";

/// Kinds whose `_FillValue` xarray encodes in format 3.
bool has_fill_attribute(const DataType& type) {
  switch (type.kind) {
    case Kind::boolean:
    case Kind::signed_int:
    case Kind::unsigned_int:
    case Kind::floating:
    case Kind::complex:
      return true;
    default:
      return false;
  }
}

Json dims_json(const Dims& dims) {
  return Json(std::vector<std::int64_t>(dims.begin(), dims.end()));
}

std::string vlen_codec(const DataType& type) {
  return type.kind == Kind::variable_string ? "vlen-utf8" : "vlen-bytes";
}

Json bytes_codec(const DataType& type) {
  Json codec = {{"name", "bytes"}};
  const bool has_order = type.itemsize > 1 && type.kind != Kind::bytes && type.kind != Kind::raw;
  if (has_order) codec["configuration"] = {{"endian", "little"}};
  return codec;
}

/// The codecs of one chunk.
Json chunk_codecs_v3(const DataType& type, const Compression& compression) {
  Json codecs = Json::array();
  codecs.push_back(type.is_variable()
                       ? Json{{"name", vlen_codec(type)}, {"configuration", Json::object()}}
                       : bytes_codec(type));
  if (Json codec = v3_codec(compression, type.itemsize); !codec.is_null())
    codecs.push_back(std::move(codec));
  return codecs;
}

Json array_codecs_v3(const DataType& type, const OutputChunks& chunks,
                     const Compression& compression) {
  Json codecs = chunk_codecs_v3(type, compression);
  if (!chunks.is_sharded) return codecs;
  const Json index = Json::array(
      {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}, {{"name", "crc32c"}}});
  return Json::array({{{"name", "sharding_indexed"},
                       {"configuration",
                        {{"chunk_shape", dims_json(chunks.chunk)},
                         {"codecs", std::move(codecs)},
                         {"index_codecs", index},
                         {"index_location", "end"}}}}});
}

/// dimension_names of the copy, as stored, also those that occur twice; null where the source names
/// none.
Json names_v3(const ArrayMetadata& source, const Json& attributes) {
  if (source.zarr_format == 3 && !source.dimension_names.empty())
    return source.document.at("dimension_names");
  if (source.zarr_format == 3 && !attributes.contains(kDimensionKey)) return nullptr;
  Json names = Json::array();
  bool any = false;
  for (const auto& name : stored_dimension_names(source)) {
    any = any || name.has_value();
    names.push_back(name ? Json(*name) : Json(nullptr));
  }
  if (any) return names;
  return attributes.contains(kDimensionKey) ? Json(dimension_names(source)) : Json(nullptr);
}

/// _ARRAY_DIMENSIONS of the copy, which has a name for each dimension.
std::vector<std::string> names_v2(const ArrayMetadata& source) {
  std::vector<std::string> names = dimension_names(source);
  const auto stored = stored_dimension_names(source);
  for (std::size_t d = 0; d < names.size(); ++d)
    if (stored[d]) names[d] = *stored[d];
  return names;
}

/// A value to mask moves from v2's fill value to an attribute, in the form that format 3 has; there
/// is none for strings and times.
void set_fill_attribute(const ArrayMetadata& source, Json& attributes) {
  const DataType& type = source.type;
  if (!has_fill_attribute(type)) {
    attributes.erase(kFillKey);  // xarray cannot open an array that has one
    return;
  }
  if (!source.fill_value_json.is_null() && source.axes.empty()) {
    attributes[kFillKey] = fill_attribute(type, source.fill_value);
  } else if (const auto own = attributes.find(kFillKey); own != attributes.end()) {
    const Json& value = own->is_array() && own->size() == 1 ? own->front() : *own;
    if (const auto element = parse_fill_attribute(type, value))
      *own = fill_attribute(type, *element);
  }
}

void make_v3(const ArrayMetadata& source, OutputArray& made) {
  Json attributes = source.attributes;
  const Json names = names_v3(source, attributes);
  const bool was_v2 = source.zarr_format == 2;
  if (!names.is_null()) attributes.erase(kDimensionKey);
  if (was_v2) set_fill_attribute(source, attributes);
  const DataType& type = source.type;
  // Small numbers are written as they are in memory.
  const bool is_of_numpy = was_v2 || source.stored != nullptr;
  Json fill = source.fill_value_json;
  if (is_of_numpy)
    fill = type.is_variable()
               ? (source.fill_value_json.is_string() ? source.fill_value_json : Json(""))
               : v3_fill_value(type, source.fill_value);
  Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", dims_json(source.shape)},
      {"data_type", is_of_numpy ? v3_data_type(type) : source.document.at("data_type")},
      {"chunk_grid",
       {{"name", "regular"}, {"configuration", {{"chunk_shape", dims_json(made.chunks.object)}}}}},
      {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
      {"fill_value", std::move(fill)},
      {"codecs", array_codecs_v3(type, made.chunks, made.compression)},
      {"attributes", attributes}};
  if (!names.is_null()) document["dimension_names"] = names;
  document["storage_transformers"] = Json::array();
  made.attributes = std::move(attributes);
  made.metadata = std::make_shared<const ArrayMetadata>(
      parse_array_v3(made.path, document, join_path(made.path, "zarr.json")));
  made.document = std::move(document);
}

void make_v2(const ArrayMetadata& source, OutputArray& made) {
  if (made.chunks.is_sharded)
    throw Error(ErrorCode::not_supported, "Zarr format 2 has no shards; leave --shards out");
  Json attributes = source.attributes;
  const DataType& type = source.type;
  Json fill = source.fill_value_json, dtype, filters = nullptr;
  if (source.zarr_format == 2) {
    dtype = source.document.at("dtype");
  } else {
    attributes[kDimensionKey] = names_v2(source);
    dtype = type.is_variable() ? Json("|O") : v2_descr(type);
    fill = nullptr;  // xarray masks the fill value of format 2
    // Values to mask are named by the attribute alone in format 3, by the fill value in format 2.
    std::optional<std::vector<std::byte>> masked;
    if (const auto own = attributes.find(kFillKey); own != attributes.end() && !type.is_variable())
      masked = parse_fill_attribute(type, *own);
    if (masked) {
      fill = v2_fill_value(type, *masked);
      attributes.erase(kFillKey);
    }
    made.writes_fill = !masked || *masked != source.fill_value;
  }
  if (type.is_variable()) filters = Json::array({{{"id", vlen_codec(type)}}});
  Json document = {{"zarr_format", 2},
                   {"shape", dims_json(source.shape)},
                   {"chunks", dims_json(made.chunks.chunk)},
                   {"dtype", std::move(dtype)},
                   {"compressor", v2_compressor(made.compression, type.itemsize)},
                   {"fill_value", std::move(fill)},
                   {"order", "C"},
                   {"filters", std::move(filters)},
                   {"dimension_separator", "."}};
  if (document["fill_value"].is_null() && (!type.is_variable() || source.zarr_format != 2))
    made.writes_fill = true;
  made.metadata = std::make_shared<const ArrayMetadata>(
      parse_array_v2(made.path, document, attributes, join_path(made.path, ".zarray")));
  made.document = std::move(document);
  made.attributes = std::move(attributes);
}

/// The codecs of one chunk, also of sharded arrays.
std::shared_ptr<const CodecChain> chunk_chain(const OutputArray& made) {
  const ArrayMetadata& metadata = *made.metadata;
  ChunkLayout layout{made.chunks.chunk, metadata.type, metadata.fill_value};
  const std::vector<CodecSpec> codecs =
      made.chunks.is_sharded
          ? parse_codec_list(
                JsonRef(metadata.codecs.front().configuration, "sharding_indexed").at("codecs"))
          : metadata.codecs;
  return std::make_shared<const CodecChain>(codecs, layout);
}

}  // namespace

OutputArray make_output_array(const ArrayMetadata& source, const std::string& path, int format,
                              const OutputChunks& chunks, const Compression& compression) {
  OutputArray made{.path = path, .chunks = chunks, .compression = compression};
  try {
    for (std::size_t d = 0; d < chunks.chunk.size(); ++d)
      if (chunks.object[d] % chunks.chunk[d] != 0)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("shards of {} elements are not a whole number of chunks of {}",
                                chunks.object[d], chunks.chunk[d]));
    format == 3 ? make_v3(source, made) : make_v2(source, made);
    if (!made.metadata->unsupported.empty())
      throw Error(ErrorCode::not_supported, made.metadata->unsupported);
    if (!source.type.is_variable()) made.chain = chunk_chain(made);
  } catch (Error& error) {
    throw error.at(path);
  }
  return made;
}

Json group_document_v3(const Json& attributes) {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}};
}

}  // namespace batchfs
