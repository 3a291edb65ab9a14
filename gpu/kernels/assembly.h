#pragma once
// The rows that say how decoded chunks become a batch: one Gather per box of a chunk, and a
// Conversion for each way that elements change on their way. Written by the host (gather_plan.h),
// read by the kernel (assembly.cuh). Offsets are bytes from the start of an area; the host has
// checked that every element that a row touches lies inside of its areas.

#include <cstdint>

namespace batchfs::gpu {

enum class Number : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, bf16 };

constexpr std::uint32_t size_of(Number number) {
  constexpr std::uint8_t kSizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2};
  return kSizes[static_cast<int>(number)];
}

/// Conversion of each element, in this order: byte order, cast to `arithmetic`, mask, scale,
/// offset; with `in_doubles` then normalisation and replacement of NaN, in float64; a cast to
/// `result`. The rules are those of engine/dataset/converter.cc, rounding by rounding.
struct Conversion {
  bool copies = false;    // elements unchanged, but for the byte order
  std::uint8_t item = 1;  // bytes of a stored element
  std::uint8_t result_item = 1;
  Number stored = Number::f32;
  Number arithmetic = Number::f32;  // f16, f32 or f64
  Number result = Number::f32;
  bool has_scale = false, has_offset = false, in_doubles = false, normalises = false,
       has_nan_value = false;
  std::uint32_t masks = 0;
  std::uint64_t masked = 0;                // `masks` float64 in the constants area
  std::uint64_t subtract = 0, divide = 0;  // `entries` float64 each in the constants area
  std::uint64_t entries = 0;
  double scale = 1, offset = 0, nan_value = 0;
};

/// Dimensions that are contiguous on both sides are joined, so few are left.
inline constexpr std::uint32_t kGatherDims = 6;

struct GatherDim {
  std::uint32_t count = 1;
  std::int64_t source_stride = 0, target_stride = 0;  // bytes
  std::int64_t entry_stride = 0;                      // entries of the normalisation's numbers
};

/// One box of a chunk, or of fill value, and where its elements go in the batch.
struct Gather {
  std::uint64_t source = 0;  // in the target area of decoding, or the constants area
  std::uint64_t target = 0;  // in the batch area
  std::uint64_t entry = 0;   // of the normalisation's numbers
  std::uint32_t elements = 0;
  std::uint32_t first_slice =
      0;  // of kGatherSlice elements; the first block of threads that works on it
  std::uint32_t conversion = 0;  // row of the conversions
  std::uint8_t dims = 0;
  bool from_constants = false;  // a missing chunk: its fill value
  std::uint8_t swap = 1;        // bytes of a word that is stored in the other order; 1: none is
  GatherDim dim[kGatherDims];   // fastest first
};

inline constexpr std::uint32_t kGatherSlice = 8192;
constexpr std::uint32_t gather_slices(std::uint32_t elements) {
  return (elements + kGatherSlice - 1) / kGatherSlice;
}

/// All arguments of the kernel.
struct AssemblyWork {
  const std::uint8_t* chunks = nullptr;
  const std::uint8_t* constants = nullptr;
  std::uint8_t* batch = nullptr;
  const Conversion* conversions = nullptr;
  const Gather* gathers = nullptr;
  std::uint32_t gather_count = 0;
};

}  // namespace batchfs::gpu
