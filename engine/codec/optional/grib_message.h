#pragma once
// What must hold of a GRIB message before ecCodes sees it.
//
// ecCodes believes the numbers in a message: it takes as much memory as they say, and reads where
// they point. So its sections, their lengths, its number of points, and the sizes in an image
// inside of it are compared with the message's length and with the chunk's shape first. Sources:
// WMO Manual on Codes, FM 92 GRIB editions 1 and 2; ISO/IEC 15444-1 (JPEG 2000), PNG.

#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs {

/// What ecCodes may take for a message.
struct GribMessage {
  int edition = 2;
  /// Bytes, of zeros, that must follow the message in memory: how far packings with lengths of
  /// their own may read beyond it.
  std::uint64_t padding = 0;
};

/// Throws corrupt for a message that is not one whole message of `points` points (edition 1 does
/// not say how many), not_supported for packings that are not read.
GribMessage check_grib_message(std::span<const std::byte> bytes, std::uint64_t points);

}  // namespace batchfs
