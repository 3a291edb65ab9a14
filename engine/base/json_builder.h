#pragma once
// Builds a Json from the parser's events, in linear time and without growing anything: nlohmann's
// own builder looks through all keys of an object for each new one, and moves members by copying
// whole subtrees.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/json_limits.h"

namespace batchfs {

struct BuiltJson {
  Json json;
  /// A key that an object names twice; its last value counts, at its first place.
  std::optional<std::string> duplicate;
};

/// `shape` is of this text, or of the one in which `numbers` are not quoted yet: the strings, counted
/// from 0 with the keys, that stand for numbers JSON has no text for ("NaN", "Infinity",
/// "-Infinity"); ascending. Throws what Json::parse() throws: Json::parse_error, Json::out_of_range.
BuiltJson build_json(std::string_view text, const JsonShape& shape,
                     const std::vector<std::uint32_t>& numbers = {});

}  // namespace batchfs
