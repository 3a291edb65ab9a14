#pragma once
// One model for Zarr v2 and v3 array metadata.
// Sources: Zarr v2 specification; v3 core specification 3.1; zarr-extensions registry.

#include <optional>
#include <string>
#include <vector>

#include "engine/base/dims.h"
#include "engine/zarr/array_axis.h"
#include "engine/zarr/data_type.h"
#include "engine/zarr/small_number.h"

namespace batchfs {

/// A codec as the metadata names it; `numcodecs.` prefixes are removed ("zlib", "blosc", "bytes").
struct CodecSpec {
  std::string name;
  Json configuration = Json::object();
};

/// Where a chunk lies. v3 core, "Chunk key encoding": default ("c/0/1", "c" for 0-d) and v2 ("0.1",
/// "0" for 0-d).
struct ChunkKeyEncoding {
  enum class Style : std::uint8_t { v2, v3_default } style = Style::v2;
  char separator = '.';
  /// Dimensions of length 1 in front of those that the stored array has: see add_leading_axis().
  std::uint8_t leading = 0;

  /// The key below the array's path.
  std::string key(const Dims& chunk) const;
};

struct ArrayMetadata {
  std::string path;  // in the store, no leading or trailing slash; "" at its root
  int zarr_format = 2;
  Dims shape;
  Dims chunk_shape;  // of stored objects: for sharded arrays, the shard
  DataType type;
  /// The stored form of the elements, where it is not that of `type`; nullptr otherwise.
  const SmallNumber* stored = nullptr;
  std::vector<std::byte> fill_value;  // one element, native; empty for variable-length types
  Json fill_value_json;               // as stored; null when there is none
  /// In encode order. For v2: transpose (order F), bytes, the filters, the compressor.
  std::vector<CodecSpec> codecs;
  ChunkKeyEncoding key_encoding;
  std::vector<std::optional<std::string>> dimension_names;  // v3 only; empty when absent
  /// From the group's metadata (OME-Zarr); empty where that has none.
  std::vector<ArrayAxis> axes;
  Json attributes = Json::object();
  Json document;  // as stored (v2: .zarray)
  /// Why values of this array cannot be read, naming the feature; empty when they can be. Metadata
  /// is still shown, so one such array does not spoil a store.
  std::string unsupported;
  std::string source;  // key of the object that held the document; empty: of none
};

/// `where` is the key, for messages. Throws invalid_argument or corrupt for metadata that is wrong;
/// valid but unhandled features go to `unsupported`. The documents are kept.
ArrayMetadata parse_array_v2(const std::string& path, Json zarray, Json zattrs,
                             const std::string& where);
ArrayMetadata parse_array_v3(const std::string& path, Json document, const std::string& where);

/// Bytes of memory that it takes.
std::uint64_t memory_of(const ArrayMetadata& array);

}  // namespace batchfs
