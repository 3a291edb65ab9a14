#pragma once
// A group of a store as a store of its own: what its URL alone means, where the metadata of all
// groups lies in one document above it.

#include <string>

#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// The nodes at and below `path` by their paths from there, for a store whose root is `path`. None
/// are left where there is no such group.
Hierarchy rerooted(Hierarchy hierarchy, const std::string& path);

}  // namespace batchfs
