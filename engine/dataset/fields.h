#pragma once
// The fields of structured arrays as variables of their own: of an array "a" with the fields "x"
// and "y", "a.x" and "a.y"; of a field that is itself structured, "a.position.x".
//
// A field's variable reads the chunks of its array, and takes its own bytes of each element
// (engine/codec/record_member.cc). Attributes that define how stored numbers are decoded belong to
// no field, and neither does the mask that xarray makes of a v2 fill value.

#include <string>
#include <utility>
#include <vector>

#include "engine/zarr/array_metadata.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// Structured arrays of more fields, counted through all levels, are read as a whole only.
inline constexpr std::size_t kMaxFieldVariables = 64;

/// The metadata of each field's variable, by the suffix of the array's name: ".x". Nothing for
/// other arrays. A field that holds an array is included with `unsupported`.
std::vector<std::pair<std::string, ArrayMetadata>> field_variables(const ArrayMetadata& array);

/// The structured array of which `path` names a field's variable: of "group/a.x" it is "group/a".
/// nullptr when there is none.
const ArrayMetadata* array_of_field(const Hierarchy& hierarchy, const std::string& path);

}  // namespace batchfs
