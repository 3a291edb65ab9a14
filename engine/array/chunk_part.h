#pragma once
// A part of a chunk: the run of its elements that holds it, and decoding it from the fetched bytes
// to its destination, in the cheapest way.

#include <cstddef>
#include <cstdint>

#include "engine/array/encoded_chunk.h"
#include "engine/base/dims.h"
#include "engine/codec/chain.h"

namespace batchfs {

/// Elements of a chunk, in C order.
struct ElementRun {
  std::uint64_t first = 0, count = 0;
};

/// From the first element of `part` (chunk coordinates, not empty) to its last.
ElementRun run_of(const Dims& chunk_shape, const Box& part);

/// Are these the strides, in bytes, of a C-order array of this shape? Strides of dimensions of
/// length 1 do not matter.
bool is_contiguous(const Dims& shape, const Dims& strides, std::int64_t itemsize);

/// A chunk's form.
struct ChunkForm {
  const CodecChain& chain;
  const Dims& shape;
  std::uint32_t itemsize;
};

/// Would decode_part() write `part` straight to memory with these strides, without a scratch copy?
bool decodes_directly(const ChunkForm& form, const Box& part, const Dims& strides);

/// Bytes of memory that decode_part() takes beside its input and output, at most, from a chunk that
/// is not in pieces.
std::uint64_t scratch_bytes(const ChunkForm& form, const Box& part, const Dims& strides);

/// Writes the elements of `part` (chunk coordinates, not empty) to `out`, native byte order, at
/// `strides` in bytes. `encoded` is not missing, and was fetched for a box that holds `part`. Takes
/// the cheapest way: the whole chunk straight to `out`, a run of elements, or the whole to scratch
/// and a copy. Returns the bytes decoded. Throws corrupt.
std::uint64_t decode_part(const ChunkForm& form, const EncodedChunk& encoded, const Box& part,
                          std::byte* out, const Dims& strides);

}  // namespace batchfs
