#pragma once
// The metadata of an array that is a copy of another with other chunks.
//
// Values, attributes and fill value stay as stored. Between format 2 and 3 names of dimensions and
// the value that xarray masks move to where each format keeps them:
//   dimension names   v2: the attribute _ARRAY_DIMENSIONS     v3: dimension_names
//   masked value      v2: fill_value                          v3: the attribute _FillValue

#include <memory>
#include <string>

#include "engine/codec/chain.h"
#include "engine/write/compression.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// Elements of chunks and of the objects that hold them; both are equal without shards.
struct OutputChunks {
  Dims chunk, object;
  bool is_sharded = false;
};

struct OutputArray {
  std::string path;  // in the output
  Json document;     // zarr.json, or .zarray
  Json attributes;   // v2: .zattrs; v3: in the document, too
  OutputChunks chunks;
  Compression compression;
  std::shared_ptr<const ArrayMetadata> metadata;  // as a reader of the copy sees it
  std::shared_ptr<const CodecChain> chain;        // of one chunk; null for strings of any length
  /// Must chunks that hold nothing but fill values be written? Where missing chunks have no defined
  /// values, or others.
  bool writes_fill = false;
};

/// `format` is 2 or 3; `path` that in the output. Throws not_supported for arrays that the format
/// cannot hold, invalid_argument for shards that are not a whole number of chunks.
OutputArray make_output_array(const ArrayMetadata& source, const std::string& path, int format,
                              const OutputChunks& chunks, const Compression& compression);

/// A group's own documents.
Json group_document_v3(const Json& attributes);

}  // namespace batchfs
