#pragma once
// The level of an OME-Zarr image that a view or a command is of.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engine/base/json.h"
#include "tools/cli/store_options.h"

namespace batchfs {

/// The name of the variable that the array of a chosen level is.
inline constexpr char kLevelVariable[] = "image";

/// A view's own "level", else that of --level; nullopt: neither. Throws invalid_argument for a key
/// of the wrong type.
std::optional<LevelChoice> level_of_view(const Json& view, const OpenedStore& opened);

/// The array of the level of the image at the path `group`. Throws the errors of
/// OmeMetadata::image() and choose_level(), and not_found if the array is missing.
std::string level_array(const Hierarchy& hierarchy, const std::string& group,
                        const LevelChoice& choice);

/// Paths by name: "image", the level of the image `group`; and for each text "labels/cells:image"
/// the level of that image. Throws invalid_argument if the group has another array "image".
std::map<std::string, std::string> level_arrays(const Hierarchy& hierarchy,
                                                const std::string& group,
                                                const std::set<std::string>& texts,
                                                const LevelChoice& choice);

}  // namespace batchfs
