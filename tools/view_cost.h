#pragma once
// What reading a view costs, estimated from the plans of a few of its batches, and advice.

#include <optional>
#include <string>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// Per batch, averages over the planned batches, supposing that no chunk is left over from another batch.
struct ViewCost {
  std::vector<std::int64_t> planned;        // the batches that were planned, of epoch 0
  double batch_bytes = 0;                   // of the tensors
  double chunks = 0;                        // distinct chunks
  double used_bytes = 0;                    // stored elements that go into the batch, each once (at most
                                            // this, where windows overlap in very many ways)
  double decoded_bytes = 0;                 // of whole chunks: at most what is decoded
  std::optional<double> fetched_bytes;      // stored bytes of the chunks; nothing when none could be read
  double decode_amplification() const { return used_bytes > 0 ? decoded_bytes / used_bytes : 1; }
  /// Against the same elements in chunks of which every element is used.
  std::optional<double> fetch_amplification() const;

  std::int64_t view_chunks = 0;             // chunks that the arrays of the view have
  double view_bytes = 0;                    // decoded
  /// How often a chunk is read in an epoch when none is kept between batches.
  double reads_per_chunk = 1;
  double epoch_bytes = 0;                   // of the tensors of all batches
  double memory_need = 0;                   // a batch being read, one ahead, and the chunks of one

  /// The dimension along which chunks are used worst: how much of a chunk's length a batch takes.
  struct Waste {
    std::string variable, dim;
    double used = 0;                        // of `chunk`, on average
    std::int64_t chunk = 0;
  };
  std::optional<Waste> waste;               // nothing when all is used
};

ViewCost estimate_cost(const View& view);

/// What would make it cheaper, most important first; each a sentence or two. `memory`: the budget in bytes.
std::vector<std::string> advice(const View& view, const ViewCost& cost, std::uint64_t memory);

}  // namespace batchfs
