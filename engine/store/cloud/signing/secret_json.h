#pragma once
// JSON that holds secrets: credentials and tokens.

#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace batchfs {

/// Like parse_json(), but an error quotes nothing of the text, since it goes to logs and terminals.
Json parse_secret_json(std::string_view text, const std::string& where);

}  // namespace batchfs
