#pragma once
// How much of a chunk is fetched and decoded: the cheapest extent for all uses of it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/array/array.h"
#include "engine/pipeline/chunks/assembly.h"

namespace batchfs {

/// The elements of the chunk that this use needs, in chunk coordinates.
Box needed(const Assembly& assembly, const Assembly::Use& use);

/// Elements of the chunk that exist, in chunk coordinates.
Box whole_chunk(const Array& array, std::int64_t chunk);

/// The box to decode when `need` is needed now and `wanted` soon, in parts that they share: `need`,
/// the bounding box of all, or the whole chunk, whichever is cheapest in the end. A part is as
/// large as the blocks that are decoded for it allow, where others may want that. `later` other
/// uses are known to come while the whole chunk could still be cached; `keeps`: it is used again
/// and cached for good.
Box box_to_decode(const Array& array, std::int64_t chunk, const Box& need,
                  std::span<const Box> wanted, std::size_t later, bool keeps);

/// Is it cheaper to fetch only the pieces of the stored chunk that `box` needs, when there will be
/// `uses` uses of parts of it? `known`: the stored pieces that are kept; null: none. False when
/// the speed of the store is not known.
bool fetches_pieces(const Array& array, std::int64_t chunk, const Box& box, std::size_t uses,
                    const EncodedChunk* known);

/// Stored bytes needed to decode `need`, as if the chunk were stored as the largest that has come
/// so far was; before one has, as if it did not compress.
std::uint64_t stored_bytes(const Array& array, const Box& need, bool in_pieces);

}  // namespace batchfs
