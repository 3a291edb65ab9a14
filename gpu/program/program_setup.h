#pragma once
// The constants of a view's programs, sent once: how large its areas are, how elements are
// converted, and the numbers for that. Flat bytes, as a program.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/program/program.h"

namespace batchfs::gpu {

struct ProgramSetup {
  AreaSizes sizes;
  std::uint32_t lanes = 1, slots = 1;
  std::uint64_t slot_bytes = 0;
  std::vector<Conversion> conversions;
  std::vector<std::byte> constants;

  std::vector<std::byte> to_bytes() const;
  /// Takes bytes of any origin. Throws corrupt unless all of it makes sense.
  static ProgramSetup from_bytes(std::span<const std::byte> bytes);
};

}  // namespace batchfs::gpu
