#pragma once
// Reads the OME-Zarr metadata of all groups of a store.

#include "engine/zarr/hierarchy.h"
#include "engine/zarr/metadata_memory.h"

namespace batchfs {

/// Fills `hierarchy.ome` anew, and the axes of the arrays that are levels of images. Metadata that
/// cannot be used is a problem of its group. Throws no_memory.
void read_ome(Hierarchy& hierarchy, MetadataMemory& memory);

}  // namespace batchfs
