#pragma once
// Where the OME-Zarr metadata of a group stands in its attributes, and of which version it is.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace batchfs {

struct OmeDocument {
  /// "0.1" to "0.6"; of "0.5-dev2" and "0.6.dev4" the first two numbers.
  std::string version;
  JsonRef members;  // the attributes, or their member "ome"

  bool is_before(std::string_view other) const { return version < other; }
};

/// nullopt: the attributes of the group at the path `group` hold none of multiscales, plate, well,
/// labels, series and bioformats2raw.layout in the place and of the type for it: outside of "ome"
/// other conventions have such keys, too. Throws not_supported for other versions, invalid_argument
/// for a version that is not a string. Refers to `attributes`.
std::optional<OmeDocument> find_ome(const Json& attributes, const std::string& group);

/// A path in the group below `group`; `relative` is its form in the metadata. Throws
/// invalid_argument for one that leads elsewhere.
std::string path_below(const std::string& group, const JsonRef& relative);

/// Throws not_supported for a list of more than `most` elements, invalid_argument for a value that
/// is not a list.
void check_length(const JsonRef& list, std::size_t most);

}  // namespace batchfs
