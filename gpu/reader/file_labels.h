#pragma once
// Labels from the files of a mount, coords/NAME.npy and batch-NNNNNN.json, read on first use.

#include <memory>
#include <string>

#include "gpu/reader/labels.h"

namespace batchfs::reader {

/// The coordinates of a view's directory.
std::shared_ptr<const Coordinates> file_coordinates(std::string directory,
                                                    std::shared_ptr<const Schema> schema);

/// The windows of the batch whose files begin with `path`.
std::shared_ptr<const Windows> file_windows(const std::string& path,
                                            std::shared_ptr<const Schema> schema,
                                            std::int64_t samples);

}  // namespace batchfs::reader
