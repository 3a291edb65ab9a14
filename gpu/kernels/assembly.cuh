#pragma once
// Puts a batch together from decoded chunks, in one pass over its elements: byte order, CF mask,
// scale and offset, normalisation, cast, and each element to its place.
//
// Parallelism: one thread per element of the batch; the kernel is memory-bound. A block of threads
// takes a slice of a box, in the order of the box's elements, so that neighbouring threads read and
// write neighbouring elements wherever both sides are contiguous.

#include "gpu/kernels/assembly.h"
#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/numbers.cuh"

namespace batchfs::gpu {

/// An element's bytes as a little-endian number, at an address that `size`, 1 to 8, divides.
BATCHFS_GPU std::uint64_t load_word(const std::uint8_t* at, std::uint32_t size) {
  switch (size) {
    case 1:
      return *at;
    case 2:
      return *reinterpret_cast<const std::uint16_t*>(at);
    case 4:
      return *reinterpret_cast<const std::uint32_t*>(at);
    default:
      return *reinterpret_cast<const std::uint64_t*>(at);
  }
}

BATCHFS_GPU void store_bytes(std::uint8_t* at, std::uint64_t word, std::uint32_t size) {
  switch (size) {
    case 1:
      *at = static_cast<std::uint8_t>(word);
      return;
    case 2:
      *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(word);
      return;
    case 4:
      *reinterpret_cast<std::uint32_t*>(at) = static_cast<std::uint32_t>(word);
      return;
    default:
      *reinterpret_cast<std::uint64_t*>(at) = word;
  }
}

BATCHFS_GPU std::uint64_t reversed_bytes(std::uint64_t word, std::uint32_t size) {
  std::uint64_t result = 0;
  for (std::uint32_t i = 0; i < size; ++i) result = result << 8 | (word >> (8 * i) & 0xff);
  return result;
}

/// Half precision rounds after each operation, which is done in float32.
BATCHFS_GPU float rounded_to(Number arithmetic, float value) {
  return arithmetic == Number::f16 ? float_of_half(half_of(widened(value))) : value;
}
BATCHFS_GPU double rounded_to(Number, double value) { return value; }

BATCHFS_GPU void cast_to(float& to, float value) { to = value; }
BATCHFS_GPU void cast_to(float& to, double value) { to = narrowed(value); }
BATCHFS_GPU void cast_to(double& to, float value) { to = widened(value); }
BATCHFS_GPU void cast_to(double& to, double value) { to = value; }

/// A stored number in the type that it is computed in: float (which float16 is kept in, too) or
/// double.
template <class A>
BATCHFS_GPU A number_of(std::uint64_t word, Number stored, Number arithmetic) {
  A value{};
  switch (stored) {
    case Number::i8:
      value = static_cast<A>(static_cast<std::int8_t>(word));
      break;
    case Number::i16:
      value = static_cast<A>(static_cast<std::int16_t>(word));
      break;
    case Number::i32:
      value = static_cast<A>(static_cast<std::int32_t>(word));
      break;
    case Number::i64:
      value = static_cast<A>(static_cast<std::int64_t>(word));
      break;
    case Number::u8:
    case Number::u16:
    case Number::u32:
      value = static_cast<A>(static_cast<std::uint32_t>(word));
      break;
    case Number::u64:
      value = static_cast<A>(word);
      break;
    case Number::f32:
      cast_to(value, float_of(static_cast<std::uint32_t>(word)));
      break;
    case Number::f64:
      // Rounds once: from float64 to float16 by way of float32 would round twice.
      if (arithmetic == Number::f16)
        cast_to(value, float_of_half(half_of(double_of(word))));
      else
        cast_to(value, double_of(word));
      break;
    default:
      cast_to(value, float_of_half(static_cast<std::uint16_t>(word)));
      return value;
  }
  return rounded_to(arithmetic, value);
}

/// The computed element, before the cast to the result type.
template <class A>
BATCHFS_GPU A decoded(const Conversion& c, const std::uint8_t* constants, std::uint64_t word) {
  A value = number_of<A>(word, c.stored, c.arithmetic);
  const A stored = value;
  const auto* masked = reinterpret_cast<const double*>(constants + c.masked);
  const auto constant = [&](double number) {
    return number_of<A>(bits_of(number), Number::f64, c.arithmetic);
  };
  for (std::uint32_t i = 0; i < c.masks; ++i)
    if (stored == constant(masked[i])) cast_to(value, double_of(0x7ff8000000000000ull));
  if (c.has_scale) value = rounded_to(c.arithmetic, product(value, constant(c.scale)));
  if (c.has_offset) value = rounded_to(c.arithmetic, sum(value, constant(c.offset)));
  return value;
}

/// The bits of the result.
template <class A>
BATCHFS_GPU std::uint64_t result_of(const Conversion& c, A value) {
  float single;
  double full;
  switch (c.result) {
    case Number::f32:
      cast_to(single, value);
      return bits_of(single);
    case Number::f64:
      cast_to(full, value);
      return bits_of(full);
    case Number::f16:
      cast_to(full, value);
      return half_of(full);
    default:
      cast_to(full, value);
      return bfloat16_of(full);
  }
}

BATCHFS_GPU std::uint64_t converted(const Conversion& c, const std::uint8_t* constants,
                                    std::uint64_t word, std::uint64_t entry) {
  if (!c.in_doubles) {
    // Elements that are only masked keep their bits: float16 arithmetic is done in float32 and
    // would quiet a NaN.
    if (c.stored == Number::f16 && c.result == Number::f16 && !c.has_scale && !c.has_offset &&
        (word & 0x7fffu) > 0x7c00u)
      return word;
    if (c.arithmetic == Number::f64) return result_of(c, decoded<double>(c, constants, word));
    return result_of(c, decoded<float>(c, constants, word));
  }
  double value;
  if (c.arithmetic == Number::f64)
    value = decoded<double>(c, constants, word);
  else
    cast_to(value, decoded<float>(c, constants, word));
  if (c.normalises) {
    const double subtract = reinterpret_cast<const double*>(constants + c.subtract)[entry];
    const double divide = reinterpret_cast<const double*>(constants + c.divide)[entry];
    value = quotient(difference(value, subtract), divide);
  }
  if (c.has_nan_value && is_nan(value)) value = c.nan_value;
  return result_of(c, value);
}

/// Copies an element of `item` bytes and reverses the bytes of each word of `swap` bytes.
BATCHFS_GPU void copy_element(const std::uint8_t* from, std::uint8_t* to, std::uint32_t item,
                              std::uint32_t swap) {
  if (item == 1 || item == 2 || item == 4 || item == 8) {
    const std::uint64_t word = load_word(from, item);
    if (swap < 2) return store_bytes(to, word, item);
    if (swap == item) return store_bytes(to, reversed_bytes(word, item), item);
  }
  for (std::uint32_t i = 0; i < item; ++i)
    to[i] = from[swap < 2 ? i : i / swap * swap + (swap - 1 - i % swap)];
}

/// The work of one block of threads: slice `slice` of all slices.
template <int kThreads>
BATCHFS_GPU void gather_slice(const AssemblyWork& work, std::uint32_t slice) {
  // The last row that begins at or before this slice.
  std::uint32_t low = 0, high = work.gather_count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (work.gathers[middle].first_slice <= slice)
      low = middle;
    else
      high = middle;
  }
  const Gather& g = work.gathers[low];
  const Conversion c = work.conversions[g.conversion];
  const std::uint8_t* source = (g.from_constants ? work.constants : work.chunks) + g.source;
  std::uint8_t* target = work.batch + g.target;
  const std::uint32_t begin = (slice - g.first_slice) * kGatherSlice;
  const std::uint32_t end = g.elements - begin < kGatherSlice ? g.elements : begin + kGatherSlice;
  if (c.copies && g.swap < 2 && g.dims == 1 && g.dim[0].source_stride == c.item &&
      g.dim[0].target_stride == c.item) {
    const std::uint64_t at = std::uint64_t{begin} * c.item;
    copy_stretch<kThreads>(source + at, target + at, 0, (end - begin) * c.item);
    return;
  }
  each_thread<kThreads>([&](int thread) {
    for (std::uint32_t i = begin + static_cast<std::uint32_t>(thread); i < end; i += kThreads) {
      const std::uint8_t* from = source;
      std::uint8_t* to = target;
      std::uint64_t entry = g.entry;
      std::uint32_t rest = i;
      for (std::uint32_t d = 0; d < g.dims; ++d) {
        const GatherDim& dim = g.dim[d];
        std::int64_t at = rest;
        if (d + 1 < g.dims) {
          at = rest % dim.count;
          rest /= dim.count;
        }
        from += at * dim.source_stride;
        to += at * dim.target_stride;
        if (c.normalises) entry += static_cast<std::uint64_t>(at * dim.entry_stride);
      }
      if (c.copies) {
        copy_element(from, to, c.item, g.swap);
        continue;
      }
      std::uint64_t word = load_word(from, c.item);
      if (g.swap > 1) word = reversed_bytes(word, c.item);
      store_bytes(to, converted(c, work.constants, word, entry), c.result_item);
    }
  });
}

}  // namespace batchfs::gpu
