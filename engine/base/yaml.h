#pragma once
// YAML that people write, as JSON text.
//
// Plain scalars follow the core schema of YAML 1.2: `true`, `false`, `null`, numbers, and else
// strings. `no`, `on`, `2000-01-01` and `10:30` are strings.

#include <string>
#include <string_view>

namespace batchfs {

/// Converts the one document of a text, its keys in their order. Comments and anchors are lost; an
/// alias stands for the whole of its anchor. Throws invalid_argument, with line and column and
/// `where` as the place, for invalid YAML and for YAML that has no JSON: several documents, tags
/// but !!str, keys that are not scalars, infinity and NaN; for more levels than parse_json() takes,
/// and for a result of more than 16 MB, as aliases of aliases can make it.
std::string json_of_yaml(std::string_view text, const std::string& where);

}  // namespace batchfs
