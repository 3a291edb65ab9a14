#pragma once
// Arrays of a web server that cannot list: only arrays that a user, a view or metadata names are
// known.

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tools/cli/store_options.h"

namespace batchfs {

/// Looks for nodes, see find_nodes(). Returns true if it found new ones: `opened.hierarchy` is then
/// replaced.
bool find_named(OpenedStore& opened, const std::vector<std::string>& paths);

/// Paths that a view of `group` may refer to: its variables, then every other text and key in it.
std::vector<std::string> paths_in_view(const Json& view, const std::string& group);

/// Advice for an incomplete hierarchy; else empty.
std::string naming_advice(const Hierarchy& hierarchy);

}  // namespace batchfs
