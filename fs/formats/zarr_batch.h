#pragma once
// A batch as a Zarr v2 group: the metadata and coordinate files around the tensors' raw bytes. v2
// because every Zarr library reads it; consolidated, one uncompressed chunk per array, fill_value
// null so that nothing is masked.

#include <string>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// Files below batch-….zarr/ but for the tensors' chunks: relative path and contents. The set of
/// paths is the same for every batch of a view.
std::vector<std::pair<std::string, std::string>> zarr_batch_files(const View& view,
                                                                  std::int64_t epoch,
                                                                  std::int64_t batch);

/// "0.0.0" for three dimensions, "0" for none.
std::string zarr_single_chunk(std::size_t dims);

}  // namespace batchfs
