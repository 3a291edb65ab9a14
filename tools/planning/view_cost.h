#pragma once
// The cost of reading a view, estimated from the plans of a few of its batches.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// Per batch, averages over the planned batches, assuming that no chunk is kept from another batch.
struct ViewCost {
  std::vector<std::int64_t> planned;  // the batches that were planned, of epoch 0
  double batch_bytes = 0;             // of the tensors
  double operand_bytes = 0;           // beside them while a batch is made: operand_memory()
  double chunks = 0;                  // distinct chunks
  double used_bytes = 0;              // stored elements that go into the batch, each once (at most
                                      // this, where windows overlap in very many ways)
  double decoded_bytes = 0;           // of whole chunks: an upper bound
  /// Stored bytes of the chunks; nullopt when none could be read.
  std::optional<double> fetched_bytes;
  double decode_amplification() const { return used_bytes > 0 ? decoded_bytes / used_bytes : 1; }
  /// Relative to the same elements in chunks of which every element is used.
  std::optional<double> fetch_amplification() const;

  /// A variable whose inspected chunks are missing: its values are fill values.
  struct Absent {
    std::string variable;
    bool all = false;  // the store has no chunk of it at all
  };
  std::vector<Absent> absent;
  /// Errors, one a variable at most, of chunks that could not be read.
  std::vector<std::string> unreadable;

  std::int64_t view_chunks = 0;        // chunks that hold what the view selects
  double view_bytes = 0;               // decoded
  std::vector<double> variable_bytes;  // the same, per variable
  /// How often a chunk is read in an epoch when none is kept between batches: see epoch_cost.h for
  /// the truth.
  double reads_per_chunk = 1;
  double epoch_bytes = 0;  // of the tensors of all batches
  double lanes = 1;        // of the order that one machine reads at a time, each in its own place
  /// Stored bytes of a chunk, per variable; nothing where none could be read or is needed.
  std::vector<std::optional<double>> stored_chunk_bytes;
  double memory_need = 0;  // a batch being read, one ahead, and the operands and chunks of one

  std::optional<double> shuffle_quality;  // see engine/view/order/shuffle_quality.h

  /// The dimension along which chunks are used worst: how much of a chunk's length a batch takes.
  struct Waste {
    std::string variable, dim;
    double used = 0;  // of `chunk`, on average
    std::int64_t chunk = 0;
  };
  std::optional<Waste> waste;  // nullopt if all is used
};

/// The view with its samples in the order that each lane has; `view` itself if it has one lane.
/// Precondition: view.order() is not null, and `view` outlives the result.
std::shared_ptr<const View> without_lanes(const View& view);

/// `view` has its samples, or is that of with_samples(view, nullptr).
ViewCost estimate_cost(const View& view);

/// Are batches read in the order of the samples' positions?
bool is_in_order(const View& view);

/// Memory of a batch that is made, with its operands and its list of uses and parts, on average.
double batch_memory(const ViewCost& cost);

/// Are all variables of stores on local disks?
bool reads_locally(const View& view);

/// Bytes of decoded chunks that an engine with a budget of `budget` bytes keeps between batches;
/// cost.view_bytes: all chunks stay.
double kept_between_batches(const View& view, const ViewCost& cost, double budget);

/// Bytes that an epoch decodes where so many bytes of chunks stay, by a formula: for epochs that are
/// not followed (epoch_cost.h). At least cost.view_bytes: then every chunk is read once.
double epoch_decoded(const View& view, const ViewCost& cost, double kept);

/// Bytes of memory to read a view, as ViewCost::memory_need, from its first batch.
double memory_need(const View& view);

/// Bytes decoded in an epoch of a view with a block order when the chunks of one run of groups are
/// kept, and the bytes of those chunks.
struct BlockCost {
  double epoch_decoded = 0, run_decoded = 0;
  std::vector<double> variables;  // epoch_decoded, per variable
};
BlockCost estimate_block_cost(const View& view);

}  // namespace batchfs
