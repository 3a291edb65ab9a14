#pragma once
// Why a batch fetches and decodes what it does: the chunks that it takes, and for each the choices of
// the engine (chunk_costs.h, kept_arrays.h) and the sharing of chunks between batches that `plan`
// follows (chunk_reuse.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/array/stored_places.h"
#include "engine/pipeline/chunks/chunk_costs.h"
#include "engine/pipeline/chunks/chunk_reuse.h"
#include "engine/view/view.h"
#include "tools/planning/epoch_cost.h"
#include "tools/planning/view_cost.h"

namespace batchfs {

/// A chunk that the batch takes.
struct ExplainedChunk {
  std::uint32_t variable = 0;
  std::int64_t chunk = 0;
  Box need;          // in chunk coordinates
  double taken = 0;  // the share of the chunk that this box has

  enum class From { memory, disk_cache, store, missing };
  From from = From::store;
  /// How it gets into memory; nothing where the epoch is not followed.
  std::optional<ChunkReuse::Supply> source;

  /// nullopt: the chunk is missing, not listed, or could not be found: see `failure`.
  std::optional<StoredPlaces::Place> place;
  std::string failure;

  /// How it is decoded; meaningless for a chunk in memory.
  DecodeChoice decoding;
  FetchChoice fetching;
  bool in_part = false;       // decoded, and fetched where it can be
  double fetched = 0;         // bytes
  bool fetched_known = true;  // rather than estimated
  std::uint64_t decoded = 0;  // bytes
};

struct BatchExplanation {
  struct Totals {
    std::int64_t in_part = 0, whole = 0, missing = 0;  // chunks that are decoded
    double fetched = 0;                                // bytes
    bool fetched_known = true;
    double decoded = 0;  // bytes
  };
  std::int64_t epoch = 0, batch = 0, samples = 0;
  std::int64_t chunks = 0;
  Totals alone;  // the batch is the first that is read
  /// A reader reads the epoch in order; nothing where the epoch is not followed.
  struct InOrder {
    Totals read;
    std::int64_t kept = 0, joined = 0;  // chunks that come from memory
    std::int64_t on_disk = 0;           // chunks of the listed ones that the disk cache holds
  };
  std::optional<InOrder> in_order;
  /// The first chunks, in the order of their uses; in the epoch, where it is followed.
  std::vector<ExplainedChunk> listed;
};

/// `epoch_cost` is that of the view with the memory. Lists `most` chunks, and looks for their places
/// in the store; the sizes of others are estimated.
BatchExplanation explain_batch(const View& view, std::int64_t epoch, std::int64_t batch,
                               const ViewCost& cost, const EpochCost& epoch_cost, std::size_t most);

}  // namespace batchfs
