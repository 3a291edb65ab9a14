#pragma once
// Formats the OME-Zarr metadata of a store for people and programs.

#include <string>

#include "engine/base/json.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// Describes an image: kind, number of levels, pixel size, notes and a table of the levels; empty
/// if the group is not an image.
std::string image_text(const Hierarchy& hierarchy, const std::string& group);

/// Plates, wells and series in and below a group, with the first of their members, and the number
/// of images.
std::string collections_text(const Hierarchy& hierarchy, const std::string& group);

/// Lines "GROUP: WHY" for metadata that cannot be used.
std::string ome_problems_text(const Hierarchy& hierarchy, const std::string& group);

/// The OME-Zarr metadata in and below a group; null if there is none.
Json ome_json(const Hierarchy& hierarchy, const std::string& group);

}  // namespace batchfs
