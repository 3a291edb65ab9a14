#pragma once
// The schema of a view's batches: parses schema.json and view.json.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/handoff/protocol.h"
#include "gpu/reader/dtype.h"

namespace batchfs::reader {

struct TensorInfo {
  std::string name;
  Dtype dtype;
  std::vector<std::int64_t> shape;  // of a full batch
  std::vector<std::string> dims;
};

struct CoordinateInfo {
  std::string name;
  Dtype dtype;  // itemsize 0 for unknown types
  std::int64_t size = 0;
};

/// A dimension that windows slide along.
struct WindowInfo {
  std::string dim;
  std::int64_t length = 0;                // of the selection along it
  std::int64_t coordinate = -1;           // number of its coordinate; -1: none
  std::int64_t first = 0, step = 1;       // positions in the store, of a selection in even steps
  std::vector<std::int64_t> listed = {};  // any other selection

  std::int64_t position(std::int64_t start) const {
    return listed.empty() ? first + start * step : listed.at(static_cast<std::size_t>(start));
  }
};

struct Schema {
  std::string view;
  std::int64_t samples = 0, epoch_samples = 0, batch_size = 0, batches = 0, epochs = 0;
  std::vector<TensorInfo> tensors;
  std::vector<std::string> formats;
  std::vector<CoordinateInfo> coordinates;
  std::vector<WindowInfo> windows;
  bool has_windows = false;  // false: the server's version does not report them
  handoff::Remainder remainder = handoff::Remainder::keep;
  std::string schema_json, view_json;  // the source texts
};

/// Throws corrupt.
Schema parse_schema(std::string schema_json, std::string view_json);

/// The batches of a rank that remain when the first `done` global batches of an epoch have been
/// read: with "keep" ranks may differ by one, with "drop" no rank gets a batch that not all get,
/// with "pad" all get the same number.
std::int64_t rank_batches(const Schema& schema, std::int64_t done, std::int64_t rank,
                          std::int64_t world);

}  // namespace batchfs::reader
