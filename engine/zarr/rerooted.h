#pragma once
// A group of a store as a store of its own: for a URL of the group alone, where the metadata of all
// groups lies in one document above it.

#include <string>

#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// The nodes at and below `path` by their paths from there, for a store whose root is `path`. None
/// are left where the group does not exist.
Hierarchy rerooted(Hierarchy hierarchy, const std::string& path);

}  // namespace batchfs
