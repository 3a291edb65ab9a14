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
  /// Returns the strings of a chunk of `count` elements, C order. Throws corrupt for other bytes,
  /// not_supported for elements that are not strings, no_memory where a chunk of `most` bytes makes
  /// more than a few times as many.
  virtual std::vector<std::string> decode(std::span<const std::byte> bytes, std::int64_t count,
                                          std::uint64_t most) const = 0;
};

/// Returns the form for `codec`, the first codec (in encode order) of an array with elements of
/// this kind. Throws not_supported by name for other codecs, and invalid_argument for a wrong
/// configuration.
std::unique_ptr<const StringForm> make_string_form(const CodecSpec& codec, Kind kind);

}  // namespace batchfs
