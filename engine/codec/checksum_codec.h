#pragma once
// Codecs that put a checksum of four bytes, little-endian, before or after the data.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "engine/codec/codec.h"

namespace batchfs {

/// Is `stored` a checksum of the data? Called by several threads at once.
using MatchesChecksum = std::function<bool(std::span<const std::byte> data, std::uint32_t stored)>;

enum class ChecksumAt : std::uint8_t { start, end };

/// numcodecs' `location` of a configuration.
ChecksumAt checksum_location(const JsonRef& configuration, ChecksumAt otherwise);

/// Decoding checks, and throws corrupt where the checksum does not match. `name` outlives the
/// codec.
std::unique_ptr<Codec> make_checksum_codec(std::string_view name, MatchesChecksum matches,
                                           ChecksumAt at = ChecksumAt::end);

}  // namespace batchfs
