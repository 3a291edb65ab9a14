// Zarr v3 array metadata. Source: Zarr core specification 3.1, "Array metadata".

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/metadata.h"

namespace batchfs {

namespace {

/// An extension point: a name, or {name, configuration, must_understand}.
struct Extension {
  std::string name;
  Json configuration = Json::object();
};

Extension parse_extension(const JsonRef& json) {
  if (json.is_string()) return {json.string()};
  Extension extension{json.at("name").string()};
  if (const auto found = json.find("configuration"); found && !found->is_null()) {
    if (!found->is_object()) throw found->error("expected an object");
    extension.configuration = found->value();
  }
  return extension;
}

/// "must_understand": false, on an object.
bool may_be_ignored(const JsonRef& json) {
  if (!json.is_object()) return false;
  const auto must = json.find("must_understand");
  return must && !must->boolean();
}

/// zarr-python writes numcodecs' codecs with a prefix; other writers do not.
std::string plain_codec_name(const std::string& name) {
  constexpr std::string_view kPrefix = "numcodecs.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

void parse_key_encoding(const JsonRef& json, ArrayMetadata& array) {
  const Extension encoding = parse_extension(json);
  const JsonRef configuration(encoding.configuration, json.path() + ".configuration");
  if (encoding.name == "default") {
    array.key_encoding = {ChunkKeyEncoding::Style::v3_default, '/'};
  } else if (encoding.name == "v2") {
    array.key_encoding = {ChunkKeyEncoding::Style::v2, '.'};
  } else {
    throw json.error(fmt::format("the chunk key encoding '{}' is not supported", encoding.name),
                     ErrorCode::not_supported);
  }
  if (const auto separator = configuration.find("separator"))
    array.key_encoding.separator = parse_separator(*separator);
}

bool has_big_endian(const Json& codecs) {
  for (const Json& codec : codecs) {
    if (!codec.is_object()) continue;
    const auto configuration = codec.find("configuration");
    if (configuration == codec.end() || !configuration->is_object()) continue;
    const auto endian = configuration->find("endian");
    if (endian != configuration->end() && *endian == "big") return true;
  }
  return false;
}

std::string grid_problem(const std::string& name) {
  return fmt::format("the chunk grid '{}' is not supported{}", name,
                     name == "rectilinear"
                         ? "; xarray copies the store to regular chunks, with "
                           "ZARR_ARRAY__RECTILINEAR_CHUNKS=True: "
                           "xr.open_zarr(STORE, chunks=None).drop_encoding().to_zarr(COPY)"
                         : "");
}

}  // namespace

ArrayMetadata parse_array_v3(const std::string& path, Json document, const std::string& where) {
  try {
    ArrayMetadata array;
    array.document = std::move(document);
    const JsonRef root(array.document, "");
    if (root.at("zarr_format").integer() != 3) throw root.at("zarr_format").error("expected 3");
    if (root.at("node_type").string() != "array")
      throw root.at("node_type").error("expected \"array\"");
    array.path = path;
    array.zarr_format = 3;
    if (const auto attributes = root.find("attributes"); attributes && !attributes->is_null()) {
      if (!attributes->is_object()) throw attributes->error("expected an object");
      array.attributes = attributes->value();
    }
    array.shape = parse_dims(root.at("shape"), 0);
    element_count(array.shape);  // throws
    if (const auto names = root.find("dimension_names"); names && !names->is_null()) {
      for (const JsonRef& name : names->elements())
        array.dimension_names.push_back(name.is_null() ? std::nullopt
                                                       : std::optional(name.string()));
      if (array.dimension_names.size() != array.shape.size())
        throw names->error("as many names as dimensions are needed");
    }
    try {
      static constexpr std::string_view kKnown[] = {
          "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
          "fill_value", "codecs", "attributes", "storage_transformers", "dimension_names",
          // written by consolidating tools into arrays too; carries nothing for a reader
          "consolidated_metadata"};
      for (const auto& [key, value] : root.members()) {
        if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
        if (!may_be_ignored(value))
          throw value.error("this extension of the metadata is not supported",
                            ErrorCode::not_supported);
      }
      if (const auto transformers = root.find("storage_transformers");
          transformers && !transformers->is_null() && !transformers->elements().empty())
        throw transformers->error("storage transformers are not supported",
                                  ErrorCode::not_supported);
      array.stored = find_small_number(root.at("data_type"));
      array.type =
          array.stored != nullptr ? array.stored->type() : parse_v3_type(root.at("data_type"));
      const Extension grid = parse_extension(root.at("chunk_grid"));
      if (grid.name != "regular")
        throw root.at("chunk_grid").error(grid_problem(grid.name), ErrorCode::not_supported);
      const JsonRef lengths =
          JsonRef(grid.configuration, "chunk_grid.configuration").at("chunk_shape");
      array.chunk_shape = parse_dims(lengths, 1);
      if (array.chunk_shape.size() != array.shape.size())
        throw lengths.error("as many lengths as dimensions are needed");
      parse_key_encoding(root.at("chunk_key_encoding"), array);
      const JsonRef codecs = root.at("codecs");
      if (codecs.value().is_array()) check_codec_count(codecs.value().size());
      for (const JsonRef& codec : codecs.elements()) {
        Extension extension = parse_extension(codec);
        array.codecs.push_back(
            {plain_codec_name(extension.name), std::move(extension.configuration)});
      }
      if (array.codecs.empty()) throw codecs.error("a list with at least one codec is needed");
      array.type.big_endian = array.type.itemsize > 1 && array.type.kind != Kind::structured &&
                              has_big_endian(codecs.value());
      const JsonRef fill = root.at("fill_value");
      array.fill_value_json = with_named_numbers(fill.value());
      if (fill.is_null() && !array.type.is_variable()) throw fill.error("null is not a fill value");
      array.fill_value = array.stored != nullptr ? array.stored->parse_fill(fill)
                                                 : parse_fill_value(array.type, fill);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;
      array.unsupported = error.what();
    }
    if (array.chunk_shape.size() == array.shape.size()) check_sizes(array);
    return array;
  } catch (Error& error) {
    throw error.at(where);
  }
}

}  // namespace batchfs
