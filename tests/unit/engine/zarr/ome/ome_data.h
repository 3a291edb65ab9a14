#pragma once
// Common parts of the tests of OME-Zarr metadata.

#include <string>

#include "engine/base/json.h"

namespace batchfs {
namespace ome_data {

/// Parses a JSON text whose path is "v".
template <class Parse>
auto parsed(const std::string& text, Parse&& parse) {
  const Json json = parse_json(text, "test");
  return parse(JsonRef(json, "v"));
}

/// The message with which `parse` refuses the text.
template <class Parse>
std::string refusal(const std::string& text, Parse&& parse) {
  try {
    parsed(text, parse);
  } catch (const Error& error) {
    return error.why();
  }
  return "no error";
}

/// The Error that `run` throws.
template <class Run>
Error thrown_by(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

}  // namespace ome_data
}  // namespace batchfs
