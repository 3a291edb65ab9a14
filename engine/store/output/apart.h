#pragma once
// Is an output place apart from the stores that are read? A command that writes into its source
// changes its own input.

#include <string>
#include <vector>

namespace batchfs {

/// Refuses a folder or file that lies in one of the stores, whatever path leads there: a link,
/// "..", a bind mount. All as typed, or in the form of Store::url(). `what` names the place in the
/// message. Throws invalid_argument.
void check_outside(const std::vector<std::string>& stores, const std::string& place,
                   const std::string& what = "output");
/// An output that becomes a store: refuses one around a store, too.
void check_apart(const std::vector<std::string>& stores, const std::string& place);

}  // namespace batchfs
