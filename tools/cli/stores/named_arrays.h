#pragma once
// Arrays of a web server that cannot list: they are known where a user, a view or metadata names
// them.

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tools/cli/store_options.h"

namespace batchfs {

/// Looks for nodes, see find_nodes(). True if there are more than before: `opened.hierarchy` is
/// then another one.
bool find_named(OpenedStore& opened, const std::vector<std::string>& paths);

/// Paths that a view of `group` may mean: its variables, then every other text and key in it.
std::vector<std::string> paths_in_view(const Json& view, const std::string& group);

/// What to do where a hierarchy is not complete; else empty.
std::string naming_advice(const Hierarchy& hierarchy);

}  // namespace batchfs
