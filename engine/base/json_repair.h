#pragma once
// Texts that Python's json module writes and reads, but that are not JSON: strings with one half of
// a surrogate pair (text that Python took from bytes other than UTF-8), and numbers beyond float64.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// A place that is repaired.
struct JsonRepair {
  const std::vector<std::string>& path;  // keys, "" for a list; of a key, the repaired one is last
  std::string_view has;                  // "a number beyond float64"
  std::string_view read_as;              // "infinity"
};
/// Called for each of them. May throw.
using OnRepair = std::function<void(const JsonRepair& repair)>;

/// The text with lone surrogates as U+FFFD, and numbers beyond float64 as the tokens Infinity and
/// -Infinity, which parse_json() takes. nullopt where there is
/// nothing to repair. At most twice as long; takes linear time. Precondition: nested no deeper than
/// parse_json() allows.
std::optional<std::string> repair_json(std::string_view text, const OnRepair& on_repair);

/// parse_json(), of the repaired text where the text itself is not JSON.
Json parse_python_json(std::string_view text, const std::string& where, std::uint64_t memory,
                       const OnRepair& on_repair);

}  // namespace batchfs
