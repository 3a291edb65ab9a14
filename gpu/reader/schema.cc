#include "gpu/reader/schema.h"

#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace batchfs::reader {

namespace {

[[noreturn]] void bad_schema(const char* what) {
  throw Error(ErrorCode::corrupt, what, "schema.json");
}

CoordinateInfo coordinate_of(const nlohmann::json& json) {
  CoordinateInfo info{json.at("name").get<std::string>(), {}, json.at("size").get<std::int64_t>()};
  if (info.size < 0) bad_schema("a coordinate's size is negative");
  try {
    info.dtype = parse_dtype(json.at("dtype").get<std::string>());
  } catch (const Error&) {  // reported only when someone asks for it
    info.dtype.name = json.at("dtype").get<std::string>();
  }
  return info;
}

WindowInfo window_of(const nlohmann::json& json, const std::vector<CoordinateInfo>& coordinates) {
  WindowInfo window{.dim = json.at("dim").get<std::string>()};
  if (json.contains("positions")) {
    const auto& positions = json["positions"];
    if (positions.contains("list")) {
      window.listed = positions["list"].get<std::vector<std::int64_t>>();
      window.length = static_cast<std::int64_t>(window.listed.size());
      return window;
    }
    window.first = positions.at("first").get<std::int64_t>();
    window.step = positions.at("step").get<std::int64_t>();
    window.length = positions.at("size").get<std::int64_t>();
    std::int64_t last = 0;
    if (window.length < 0 || __builtin_mul_overflow(window.length, window.step, &last) ||
        __builtin_add_overflow(last, window.first, &last))
      bad_schema("the positions of a window are impossible");
    return window;
  }
  for (std::size_t c = 0; c < coordinates.size(); ++c)
    if (coordinates[c].name == window.dim) {
      window.coordinate = static_cast<std::int64_t>(c);
      window.length = coordinates[c].size;
    }
  if (window.coordinate < 0) bad_schema("a window has neither a coordinate nor positions");
  return window;
}

}  // namespace

Schema parse_schema(std::string schema_json, std::string view_json) {
  try {
    const auto json = nlohmann::json::parse(schema_json);
    const auto view = nlohmann::json::parse(view_json);
    Schema schema;
    schema.view = json.at("view").get<std::string>();
    schema.samples = json.at("samples").get<std::int64_t>();
    schema.epoch_samples = json.value("epoch_samples", schema.samples);
    schema.batch_size = json.at("batch_size").get<std::int64_t>();
    schema.batches = json.at("batches").get<std::int64_t>();
    schema.epochs = json.at("epochs").get<std::int64_t>();
    if (schema.samples < 0 || schema.epoch_samples < 0 || schema.batch_size < 0 ||
        schema.batches < 0)
      throw Error(ErrorCode::corrupt, "a number is negative", "schema.json");
    for (const auto& tensor : json.at("tensors"))
      schema.tensors.push_back({tensor.at("name").get<std::string>(),
                                parse_dtype(tensor.at("dtype").get<std::string>()),
                                tensor.at("shape").get<std::vector<std::int64_t>>(),
                                tensor.at("dims").get<std::vector<std::string>>()});
    schema.formats = json.at("formats").get<std::vector<std::string>>();
    if (json.contains("window")) {
      schema.has_windows = true;
      for (const auto& coordinate : json.at("coordinates"))
        schema.coordinates.push_back(coordinate_of(coordinate));
      for (const auto& window : json["window"])
        schema.windows.push_back(window_of(window, schema.coordinates));
      if (schema.windows.size() > handoff::kMaxWindowDims)
        bad_schema("too many dimensions of windows");
    }
    if (view.contains("batch") && view["batch"].is_object()) {
      const std::string rule = view["batch"].value("remainder", "keep");
      schema.remainder = rule == "drop"  ? handoff::Remainder::drop
                         : rule == "pad" ? handoff::Remainder::pad
                                         : handoff::Remainder::keep;
    }
    schema.schema_json = std::move(schema_json);
    schema.view_json = std::move(view_json);
    return schema;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::corrupt, error.what(), "schema.json");
  }
}

std::int64_t rank_batches(const Schema& schema, std::int64_t done, std::int64_t rank,
                          std::int64_t world) {
  const std::int64_t left = schema.batches - done;
  if (left <= 0) return 0;
  switch (schema.remainder) {
    case handoff::Remainder::drop:
      return left / world;
    case handoff::Remainder::pad:
      return (left + world - 1) / world;
    case handoff::Remainder::keep:
      break;
  }
  return rank < left ? (left - rank + world - 1) / world : 0;
}

}  // namespace batchfs::reader
