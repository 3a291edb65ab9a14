#pragma once
// The OME-Zarr metadata of a store.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/zarr/ome/collection.h"
#include "engine/zarr/ome/image.h"

namespace batchfs {

struct OmeMetadata {
  std::map<std::string, OmeImage> images;            // by the path of the group
  std::map<std::string, OmeCollection> collections;  // the same
  /// Groups whose metadata cannot be used, and why. Their arrays can be.
  std::vector<std::pair<std::string, std::string>> problems;

  bool empty() const { return images.empty() && collections.empty() && problems.empty(); }
  /// Throws not_found where the group is not an image, invalid_argument where its metadata cannot
  /// be used.
  const OmeImage& image(const std::string& group) const;
};

}  // namespace batchfs
