#pragma once
// What of a chunk is fetched, and what of it is decoded: whatever costs least for all who need parts of it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/codec/array.h"
#include "engine/pipeline/assembly.h"

namespace batchfs {

/// The elements of the chunk that this use needs, in chunk coordinates.
Box needed(const Assembly& assembly, const Assembly::Use& use);

/// Elements of the chunk that exist, in chunk coordinates.
Box whole_chunk(const Array& array, std::int64_t chunk);

/// The box to decode when `need` is needed now and `wanted` soon: that, what they all need, or the whole chunk,
/// whatever is cheapest in the end. `later` other uses are known to come while the whole could still be there;
/// `keeps_all`: it could be there for good.
Box box_to_decode(const Array& array, std::int64_t chunk, const Box& need, std::span<const Box> wanted, std::size_t later,
                  bool keeps_all);

/// Is it cheaper to fetch only the pieces of the stored chunk that `box` needs, when there will be so many `uses` of
/// parts of it? `known`: what is kept of the stored chunk; null: nothing. Never when it is not known how fast the store is.
bool fetches_pieces(const Array& array, std::int64_t chunk, const Box& box, std::size_t uses, const EncodedChunk* known);

/// Bytes that the stored form of what `need` needs of a chunk takes: an estimate.
std::uint64_t stored_bytes(const Array& array, const Box& need, bool in_pieces);

}  // namespace batchfs
