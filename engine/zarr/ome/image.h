#pragma once
// "multiscales" of OME-Zarr: an image as arrays of several resolutions.
// Source: OME-Zarr specification 0.1 to 0.6, https://ngff.openmicroscopy.org.

#include <optional>
#include <string>
#include <vector>

#include "engine/zarr/ome/axes.h"
#include "engine/zarr/ome/document.h"

namespace batchfs {

struct OmeImage {
  struct Level {
    std::string path;  // of the array, in the store
    /// One for each dimension, with the known facts about its coordinate.
    std::vector<ArrayAxis> axes;
  };

  std::string version;              // "0.4"
  std::string name;                 // empty: none
  std::vector<Level> levels;        // from the highest resolution
  std::vector<std::string> labels;  // paths of its label images, where they are known
  bool is_label = false;            // its values are numbers of objects
  /// The parts of the metadata that were left out, and why.
  std::vector<std::string> notes;
};

/// The first image of a group at the path `group`. Throws invalid_argument and not_supported with
/// the path of the value in the attributes.
OmeImage parse_image(const OmeDocument& document, const std::string& group);

/// Bytes of memory that it takes.
std::uint64_t memory_of(const OmeImage& image);

}  // namespace batchfs
