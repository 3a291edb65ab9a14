#pragma once
// A batch as a Zarr v2 group: the metadata and coordinate files around the tensors' raw bytes. v2
// because every Zarr library reads it; consolidated, one uncompressed chunk per array, fill_value
// null so that nothing is masked.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/batch_coordinate.h"
#include "engine/view/view.h"

namespace batchfs {

/// A file that is not a chunk of a tensor.
struct ZarrBatchFile {
  std::string path;  // below batch-….zarr/
  std::string text;  // of metadata
  std::optional<BatchCoordinate> values;

  std::uint64_t size() const { return values ? values->bytes() : text.size(); }
  /// All of its bytes.
  std::string contents() const;
};

/// The set of paths is the same for every batch of a view. They refer to the view.
std::vector<ZarrBatchFile> zarr_batch_files(const View& view, std::int64_t epoch,
                                            std::int64_t batch);

/// "0.0.0" for three dimensions, "0" for none.
std::string zarr_single_chunk(std::size_t dims);

}  // namespace batchfs
