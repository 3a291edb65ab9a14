#pragma once
// Compressed chunks of which only pieces are fetched: what is missing for a run of elements,
// fetching that from a remote store, and the stored form with the pieces in their places.

#include <functional>
#include <optional>
#include <vector>

#include "engine/array/encoded_chunk.h"
#include "engine/codec/chain.h"
#include "engine/store/store.h"

namespace batchfs {

/// Bytes of a stored chunk that are read first, to learn where its parts are.
inline constexpr std::uint64_t kFirstHead = 4096;

/// What decode_elements() of [first, first + count) looks at in the stored form and is in no piece
/// of `chunk`, by offset; what lies close together is one span. nullopt: as
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
/// Fetches what decode_elements() of the run looks at: two round trips, the chunk's beginning,
/// which says where the rest lies, and what is lacking then; or one when `have`, an earlier outcome
/// for this chunk (it may be null), is in pieces: then its pieces are taken over. `done` is called
/// once, from any thread, possibly before this returns. Other ends are called instead, with `done`:
/// `whole` where the chunk cannot be taken apart, `missing` where its object does not exist,
/// `cut_short` where it has fewer bytes than it should.
struct OtherEnds {
  std::function<void(FetchDone)> whole, missing;
  std::function<void(const Error& damaged, FetchDone)> cut_short;
};
void fetch_run(WantedRun wanted, const EncodedChunk* have, OtherEnds other, FetchDone done);

/// What is wrong when less came than the store said there is.
Error ends_early(std::uint64_t got, std::uint64_t expected);

/// As large as the stored form, of which only what decode_elements() of these elements looks at is
/// filled in, in `scratch`, which grows as needed. Throws internal when a piece of that is missing.
std::span<const std::byte> filled_in(const CodecChain& chain, const EncodedChunk& chunk,
                                     std::uint64_t first, std::uint64_t count, Buffer& scratch);

}  // namespace batchfs
