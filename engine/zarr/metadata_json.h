#pragma once
// Metadata documents as Python writes them.
//
// zarr-python and xarray store attributes that are not JSON: text that came from bytes other than
// UTF-8 (one half of a surrogate pair), and numbers beyond float64. Such an attribute must not cost
// the store. Elsewhere, as in a shape or a fill value, it is an error of its node.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// Differences between a parsed document and the stored one: keys of nodes' documents
/// ("t2m/.zattrs"), and messages about them.
struct DocumentNotes {
  std::vector<std::pair<std::string, std::string>> repaired;  // attributes; the first 64
  std::vector<std::pair<std::string, std::string>>
      left_out;  // nodes of consolidated metadata, which cannot be used
};

/// Parses the document `key` of a store: "t2m/.zattrs", "zarr.json", ... Throws as parse_json().
Json parse_metadata(std::string_view text, const std::string& key, std::uint64_t memory,
                    DocumentNotes& notes);

}  // namespace batchfs
