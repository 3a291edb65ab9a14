#pragma once
// Units of length and time, as OME-Zarr (UDUNITS-2) and people write them.

#include <optional>
#include <string_view>

namespace batchfs {

/// Meters or seconds.
struct UnitSize {
  enum class Of : unsigned char { length, time } of = Of::length;
  double size = 1;
};

/// The size of "micrometer", "micrometre", "micrometers", "um", "µm", "ms", "angstrom"; nullopt for
/// others.
std::optional<UnitSize> unit_size(std::string_view unit);

}  // namespace batchfs
