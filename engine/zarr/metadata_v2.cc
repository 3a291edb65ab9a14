// Zarr v2 array metadata. Source: Zarr storage specification version 2, "Arrays / Metadata".

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/chunk_grid.h"
#include "engine/zarr/metadata.h"

namespace batchfs {

namespace {

/// A numcodecs configuration {"id": name, ...} as a CodecSpec.
CodecSpec numcodecs_spec(const JsonRef& codec) {
  CodecSpec spec;
  spec.name = codec.at("id").string();
  for (const auto& [key, value] : codec.members())
    if (key != "id") append_member(spec.configuration, key, value.value());
  return spec;
}

}  // namespace

ArrayMetadata parse_array_v2(const std::string& path, Json zarray, Json zattrs,
                             const std::string& where) {
  try {
    ArrayMetadata array;
    array.document = std::move(zarray);
    const JsonRef root(array.document, "");
    if (root.at("zarr_format").integer() != 2) throw root.at("zarr_format").error("expected 2");
    array.path = path;
    array.zarr_format = 2;
    if (!zattrs.is_object()) throw Error(ErrorCode::invalid_argument, ".zattrs is not an object");
    array.attributes = std::move(zattrs);
    array.shape = parse_dims(root.at("shape"), 0);
    array.chunk_shape = parse_dims(root.at("chunks"), 0);
    if (array.chunk_shape.size() != array.shape.size())
      throw root.at("chunks").error("as many lengths as dimensions are needed");
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      if (array.chunk_shape[d] != 0) continue;
      // kerchunk and VirtualiZarr write so for a dimension without elements.
      if (array.shape[d] != 0)
        throw root.at("chunks").elements()[d].error("0 is too small, the least is 1");
      array.chunk_shape[d] = 1;
    }
    std::vector<JsonRef> filters;
    if (const auto found = root.find("filters"); found && !found->is_null())
      filters = found->elements();
    try {
      std::string object_codec;
      if (!filters.empty()) object_codec = filters.front().at("id").string();
      array.type = parse_v2_type(root.at("dtype"), object_codec);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;
      array.unsupported = error.what();
    }
    check_sizes(array);
    try {
      check_codec_count(filters.size());
    } catch (const Error& error) {
      array.unsupported = error.what();
    }
    if (!array.unsupported.empty()) return array;
    if (const auto fill = root.find("fill_value"))
      array.fill_value_json = with_named_numbers(fill->value());
    array.fill_value = parse_fill_value(array.type, JsonRef(array.fill_value_json, "fill_value"));
    const std::string order = root.at("order").string();
    if (order != "C" && order != "F") throw root.at("order").error("expected \"C\" or \"F\"");
    if (order == "F" && array.shape.size() > 1) {
      std::vector<std::size_t> reversed;
      for (std::size_t d = array.shape.size(); d-- > 0;) reversed.push_back(d);
      array.codecs.push_back({"transpose", {{"order", reversed}}});
    }
    // The first filter of strings makes bytes of them.
    if (array.type.kind == Kind::structured)
      array.codecs.push_back({"bytes"});
    else if (!array.type.is_variable())
      array.codecs.push_back({"bytes", {{"endian", array.type.big_endian ? "big" : "little"}}});
    for (const JsonRef& filter : filters) array.codecs.push_back(numcodecs_spec(filter));
    if (const auto compressor = root.find("compressor"); compressor && !compressor->is_null())
      array.codecs.push_back(numcodecs_spec(*compressor));
    array.key_encoding.style = ChunkKeyEncoding::Style::v2;
    array.key_encoding.separator = '.';
    if (const auto separator = root.find("dimension_separator"); separator && !separator->is_null())
      array.key_encoding.separator = parse_separator(*separator);
    return array;
  } catch (Error& error) {
    throw error.at(where);
  }
}

}  // namespace batchfs
