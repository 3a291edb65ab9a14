#pragma once
// Groups and arrays of a server that cannot list, without consolidated metadata: they are looked
// for by their paths.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// Adds the nodes at `paths`, as far as the store has them, and those that the metadata of the root
/// and of the nodes found names: levels and label images of OME-Zarr images, the first well of a
/// plate and its first fields, the groups of arrays and their coordinates. At most 512 paths are
/// asked for. Does nothing for a hierarchy that is complete. Throws io, timed_out, and no_memory
/// where it takes more than `memory` bytes; a node whose metadata is wrong is a problem of that
/// node.
void find_nodes(Store& store, Hierarchy& hierarchy, const std::vector<std::string>& paths,
                std::uint64_t memory);

}  // namespace batchfs
