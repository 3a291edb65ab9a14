#pragma once
// Groups of OME-Zarr that hold images: plates, wells, label images, and the series of
// bioformats2raw. Source: OME-Zarr specification 0.4 to 0.6, https://ngff.openmicroscopy.org.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/zarr/ome/document.h"

namespace batchfs {

struct OmeCollection {
  enum class Type : std::uint8_t { plate, well, labels, series };

  Type type = Type::plate;
  std::string version;
  std::string name;                // of a plate; empty: none
  std::vector<std::string> paths;  // of wells or images, in the store
};

/// nullopt: the group at the path `group` is none. The series of bioformats2raw has no paths: its
/// images are the numbered groups. Throws invalid_argument and not_supported with the path of the
/// value in the attributes.
std::optional<OmeCollection> parse_collection(const OmeDocument& document,
                                              const std::string& group);

/// Bytes of memory that it takes.
std::uint64_t memory_of(const OmeCollection& collection);

}  // namespace batchfs
