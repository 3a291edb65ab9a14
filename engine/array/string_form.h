#pragma once
// How a chunk holds strings, or bytes, of any length, once its compressors are undone.
//
// Sources: numcodecs.vlen (vlen-utf8, vlen-bytes), numcodecs.json (json2), numcodecs.categorize;
// zarr-extensions "vlen-utf8", "vlen-bytes".

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// Immutable and thread-safe.
class StringForm {
 public:
  virtual ~StringForm() = default;
  /// The strings of a chunk of `count` elements, C order. Throws corrupt for other bytes,
  /// not_supported for elements that are no strings.
  virtual std::vector<std::string> decode(std::span<const std::byte> bytes,
                                          std::int64_t count) const = 0;
};

/// Of the first codec of an array of elements of this kind, in encode order. Throws not_supported
/// by name for others, and invalid_argument for a configuration that is wrong.
std::unique_ptr<const StringForm> make_string_form(const CodecSpec& codec, Kind kind);

}  // namespace batchfs
