#pragma once
// The OME-Zarr metadata of a store, for people and programs.

#include <string>

#include "engine/base/json.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// Of an image: kind, number of levels, distance of pixels, notes and a table of the levels; empty
/// where the group is none.
std::string image_text(const Hierarchy& hierarchy, const std::string& group);

/// Plates, wells and series in and below a group, with the first of their members; and how many
/// images there are.
std::string collections_text(const Hierarchy& hierarchy, const std::string& group);

/// Lines "GROUP: WHY" of the metadata that cannot be used.
std::string ome_problems_text(const Hierarchy& hierarchy, const std::string& group);

/// What is in and below a group; null where there is nothing.
Json ome_json(const Hierarchy& hierarchy, const std::string& group);

}  // namespace batchfs
