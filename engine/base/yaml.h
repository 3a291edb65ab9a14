#pragma once
// YAML that people write, as JSON text.
//
// Plain scalars are what the core schema of YAML 1.2 says: `true`, `false`, `null`, numbers, and
// else strings. `no`, `on`, `2000-01-01` and `10:30` are strings.

#include <string>
#include <string_view>

namespace batchfs {

/// The one document of a text, its keys in their order. Comments and anchors are gone; an alias
/// stands for the whole of its anchor. Throws invalid_argument, with line and column and `where` as
/// the place, for what is not valid YAML or has no JSON: several documents, tags but !!str, keys
/// that are no scalars, infinity and NaN; for more levels than parse_json() takes, and for a result
/// of more than 16 MB, as aliases of aliases can make it.
std::string json_of_yaml(std::string_view text, const std::string& where);

}  // namespace batchfs
