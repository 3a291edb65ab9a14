#pragma once
// Compressed chunks that are fetched in pieces: the missing pieces for a run of elements, fetching
// these from a remote store, and the stored form with the pieces in their places.

#include <functional>
#include <optional>
#include <vector>

#include "engine/array/encoded_chunk.h"
#include "engine/codec/chain.h"
#include "engine/store/store.h"

namespace batchfs {

/// Bytes of a stored chunk that are read first, to learn where its parts are.
inline constexpr std::uint64_t kFirstHead = 4096;

/// The spans of the stored form, by offset, that decode_elements() of [first, first + count) reads
/// and no piece of `chunk` covers; adjacent ones are merged across small gaps. nullopt: as
/// CodecChain::stored_spans().
std::optional<std::vector<Codec::Span>> lacking_spans(const CodecChain& chain,
                                                      const EncodedChunk& chunk,
                                                      std::uint64_t first, std::uint64_t count,
                                                      std::uint64_t* more);

/// A run of a chunk's elements, and where the chunk lies. The store and the chain outlive the
/// fetch.
struct WantedRun {
  Store& store;
  const CodecChain& chain;
  ChunkPlace place;
  std::uint64_t first, count;  // elements
};
/// Fetches the bytes that decode_elements() of the run reads: in two round trips, the chunk's
/// beginning, which locates the rest, and then the missing pieces; or in one when `have`, an
/// earlier outcome for this chunk (may be null), is in pieces: its pieces are then reused. `done`
/// is called once, from any thread, possibly before this returns. Other ends are called instead,
/// with `done`: `whole` where the chunk cannot be read in pieces, `missing` where its object does
/// not exist, `cut_short` where it has fewer bytes than it should.
struct OtherEnds {
  std::function<void(FetchDone)> whole, missing;
  std::function<void(const Error& damaged, FetchDone)> cut_short;
};
void fetch_run(WantedRun wanted, const EncodedChunk* have, OtherEnds other, FetchDone done);

/// The error for an object that is shorter than the store reported.
Error ends_early(std::uint64_t got, std::uint64_t expected);

/// Returns `scratch`, which grows as needed, as large as the stored form, with only the bytes
/// filled in that decode_elements() of these elements reads. Throws internal when a piece of those
/// is missing.
std::span<const std::byte> filled_in(const CodecChain& chain, const EncodedChunk& chunk,
                                     std::uint64_t first, std::uint64_t count, Buffer& scratch);

}  // namespace batchfs
