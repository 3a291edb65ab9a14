#pragma once
// Chunks of which pieces were fetched: what is missing for a run of elements, and the stored form with the pieces
// in their places.

#include <optional>

#include "engine/codec/chain.h"
#include "engine/codec/encoded_chunk.h"

namespace batchfs {

/// What decode_elements() of [first, first + count) looks at in the stored form and is in no piece of `chunk`, by
/// offset; what lies close together is one span. nullopt: as CodecChain::stored_spans().
std::optional<std::vector<Codec::Span>> lacking_spans(const CodecChain& chain, const EncodedChunk& chunk,
                                                      std::uint64_t first, std::uint64_t count, std::uint64_t* more);

/// As large as the stored form, of which only what decode_elements() of these elements looks at is filled in, in
/// `scratch`, which grows as needed. Throws internal when a piece of that is missing.
std::span<const std::byte> filled_in(const CodecChain& chain, const EncodedChunk& chunk, std::uint64_t first,
                                     std::uint64_t count, Buffer& scratch);

}  // namespace batchfs
