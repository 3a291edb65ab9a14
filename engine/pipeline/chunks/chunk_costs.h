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

/// How much of a chunk is decoded, and the figures that decided. Costs are in units of decoding the
/// whole chunk.
struct DecodeChoice {
  enum class Why {
    only_whole,    // its codecs decode the whole only
    uncompressed,  // only the bytes that are needed are read
    parts_cost,    // the parts and later uses cost as much as the whole, or nearly
    stays,         // the whole stays in memory and is used again
    most_is_used,  // the part and the rest of its blocks are more than half of a local chunk
    part_is_less,  // the part costs less than the whole
  };
  Box box;
  Why why = Why::only_whole;
  double parts = 0;  // the cost of the parts that are wanted
  double later = 0;  // the cost of parts for the later uses
};
/// Parts that together cost this much or more are decoded as the whole.
inline constexpr double kMaxPartCost = 0.9;

/// Chooses the box to decode when `need` is needed now and `wanted` soon, in parts that they share:
/// `need`, the bounding box of all, or the whole chunk, whichever is cheapest in the end. A part is
/// as large as the blocks that are decoded for it allow, where others may want that. `later` other
/// uses are known to come while the whole chunk could still be cached; `keeps`: it is used again
/// and cached for good.
DecodeChoice choose_decoding(const Array& array, std::int64_t chunk, const Box& need,
                             std::span<const Box> wanted, std::size_t later, bool keeps);

/// Is only the run of the box's elements decoded, instead of the whole chunk (chunk_part.h)?
bool is_decoded_in_part(const Array& array, const Box& box, bool in_pieces);
/// Bytes that count as decoded when the box is.
std::uint64_t decoded_bytes(const Array& array, const Box& box, bool in_pieces);

/// Whether only the pieces of the stored chunk are fetched that a box needs, and the costs that
/// decided, in bytes: a request costs what the network could have carried meanwhile.
struct FetchChoice {
  bool in_pieces = false;
  double pieces = 0, whole = 0;  // 0: there was no choice
};
/// Chooses for `uses` uses of parts of the chunk. `known`: the stored pieces that are kept; null:
/// none. The whole is fetched where the speed of the store is not known.
FetchChoice choose_fetching(const Array& array, std::int64_t chunk, const Box& box,
                            std::size_t uses, const EncodedChunk* known);

/// Stored bytes needed to decode `need`, as if the chunk were stored as the largest that has come
/// so far was; before one has, as if it did not compress.
std::uint64_t stored_bytes(const Array& array, const Box& need, bool in_pieces);

}  // namespace batchfs
