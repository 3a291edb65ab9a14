#pragma once
// Checks that a GRIB message must pass before ecCodes sees it.
//
// ecCodes trusts the numbers in a message: it allocates as much memory as they demand, and reads
// where they point. So its sections, their lengths, its number of points, and the sizes in an
// embedded image are first compared with the message's length and with the chunk's shape. Sources:
// WMO Manual on Codes, FM 92 GRIB editions 1 and 2; ISO/IEC 15444-1 (JPEG 2000), PNG.

#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs {

/// Facts about a message that ecCodes may decode.
struct GribMessage {
  int edition = 2;
  /// Bytes, of zeros, that must follow the message in memory: how far packings with lengths of
  /// their own may read beyond it.
  std::uint64_t padding = 0;
};

/// Throws corrupt for a message that is not one whole message of `points` points (edition 1 does
/// not contain their number), not_supported for unsupported packings.
GribMessage check_grib_message(std::span<const std::byte> bytes, std::uint64_t points);

}  // namespace batchfs
