#pragma once
// A chunk of a remote store that was fetched and is invalid: a cache on the way may have returned
// it short or damaged. It is read once more, past every cache.

#include "engine/array/chunk_locator.h"
#include "engine/array/encoded_chunk.h"
#include "engine/base/dims.h"
#include "engine/codec/chain.h"
#include "engine/store/store.h"

namespace batchfs {

/// The objects that a read of a chunk uses. All outlive the read.
struct ChunkSource {
  Store& store;
  const ChunkLocator& locator;
  const CodecChain& chain;
};

/// Fetches the whole stored chunk. Blocks; not for a store's callback.
EncodedChunk fetch_past_caches(const ChunkSource& source, const Dims& chunk);

/// Returns a callback that does so where a fetch ends in Error{corrupt}, and passes on everything
/// else. For a local store it is `done`.
FetchDone or_past_caches(const ChunkSource& source, const Dims& chunk, FetchDone done);

}  // namespace batchfs
