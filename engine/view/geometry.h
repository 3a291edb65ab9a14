#pragma once
// Where the elements of a window go in a tensor, and the parts of chunks they come from.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/selection.h"
#include "engine/view/batch_plan.h"
#include "engine/view/samples/label_offsets.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

/// A dimension that windows slide along, in positions of the selection.
struct WindowDim {
  std::string name;
  std::int64_t size;  // of a window
  bool wrap;
  bool padded = false;  // windows may reach over the end
};

/// The place of a dimension among those of the windows; -1: no windows slide along it.
int window_number(const std::vector<WindowDim>& windows, const std::string& dim);

/// The windows of a view, numbered row-major over the starts of its window dimensions. Start number
/// n of a dimension lies at n * stride.
struct WindowGrid {
  /// Numbers of starts, ascending. Null: first, first + 1, ...
  using Starts = std::shared_ptr<const std::vector<std::int64_t>>;

  /// Per window dimension: the number of the first start, how many there are, and their stride.
  std::vector<std::int64_t> first, counts, strides;
  std::vector<Starts> allowed = {};  // per window dimension, where a restriction left some out

  const std::vector<std::int64_t>* restricted(std::size_t w) const {
    return allowed.empty() ? nullptr : allowed[w].get();
  }
  /// The number of the i-th start along a dimension, 0 <= i < counts[w].
  std::int64_t number(std::size_t w, std::int64_t i) const {
    const std::vector<std::int64_t>* list = restricted(w);
    return list == nullptr ? first[w] + i : (*list)[static_cast<std::size_t>(i)];
  }
  /// Leaves only these numbers of starts along a dimension, ascending.
  void keep(std::size_t w, Starts numbers) {
    allowed.resize(counts.size());
    counts[w] = static_cast<std::int64_t>(numbers->size());
    allowed[w] = std::move(numbers);
  }
  /// Its position in the selection.
  std::int64_t start(std::size_t w, std::int64_t i) const { return number(w, i) * strides[w]; }
};

/// How one array dimension of a variable lies in a tensor.
struct AxisPlacement {
  /// Array indices of the view's positions; kNone, of another source: padding, unless no sample
  /// has it.
  Positions selected = Positions::range(0, 0);
  /// For a concatenated dimension, `selected` covers one part. kNone here means padding; other gaps
  /// belong to another placement.
  std::optional<Positions> padded = {};
  int window = -1;        // number of the window dimension; -1: the whole selection
  std::int64_t size = 1;  // window length
  /// Positions of `selected`, and of the tensor, for each of the view's: a finer grid.
  std::int64_t scale = 1;
  /// Positions of the tensor before these, which have placements of their own.
  std::int64_t before = 0;
  /// Positions of `selected` for each of the tensor's: a coarser grid. They divide the window.
  std::int64_t coarse = 1;
  bool wrap = false;                             // else positions beyond the end are padding
  std::vector<std::int64_t> offsets{0};          // steps from the window's start, one entry each
  std::shared_ptr<const LabelOffsets> by_label;  // in place of `offsets`, which has the same number
  std::int64_t stride =
      0;  // bytes in the tensor from one position to the next; 0: dropped dimension
  /// For a source that looks durations up among its own labels, for descriptions: `selected` is of
  /// one of them, and each has a placement. Null: none of it.
  std::shared_ptr<const std::vector<Duration>> durations;

  /// Where in `selected` the window of an offset begins, of the sample at `start`. Precondition:
  /// the view has such a sample.
  std::int64_t first(std::size_t offset, std::int64_t start) const {
    return scale * (by_label != nullptr ? by_label->first(offset, start) : start + offsets[offset]);
  }

  /// Has kNone where the tensor is padded.
  const Positions& gaps() const { return padded ? *padded : selected; }

  /// Positions of the window, of all offsets together.
  std::int64_t positions() const {
    return window < 0 ? selected.size() : size * static_cast<std::int64_t>(offsets.size());
  }
  /// Positions in the tensor.
  std::int64_t extent() const { return positions() / coarse; }
};

/// One variable in one tensor.
struct VariablePlacement {
  std::uint32_t tensor = 0;
  std::uint32_t variable = 0;       // index into View::variables(), or into TensorSet::made
  std::int64_t base = 0;            // bytes from the sample's start
  std::vector<AxisPlacement> axes;  // array order
  /// Dimensions of the tensor that the variable lacks: its values are the same at all of their
  /// positions.
  std::vector<AxisPlacement> repeated;
  bool is_first = true;  // of those that the variable has in the tensor
  bool made = false;     // a channel of TensorSet::made
  bool pads = true;      // one placement of a concatenated variable's parts pads for all of them

  /// Throws not_supported where a box of the variable would have too many dimensions.
  void repeat_along(AxisPlacement axis);
};

/// One window and where its sample begins in each tensor.
struct Row {
  Dims starts;                        // of each window dimension, in positions of the selection
  std::vector<std::int64_t> offsets;  // bytes, one per tensor
};

/// Collects the parts of a batch, grouped by chunk. Parts that continue one another become one, so
/// that a chunk that lands contiguously is one part.
class PlanBuilder {
 public:
  /// `samples`: of the batch, for the error.
  PlanBuilder(const std::vector<const Variable*>& variables, PlanLimit limit, std::size_t samples)
      : variables_(variables), limit_(limit), samples_(samples) {}

  /// Throws no_memory where the lists grow beyond the limit.
  void add(const VariablePlacement& placement, const Row& row);
  /// Throws no_memory where the lists and `more` bytes are beyond the limit.
  void check(std::uint64_t more) const {
    if (bytes() + more > limit_.bytes) throw too_long();
  }

  /// Memory of the lists so far.
  std::uint64_t bytes() const {
    return parts_ * sizeof(Part) + groups_.size() * sizeof(Group) +
           paddings_.size() * sizeof(Padding) + made_.size() * sizeof(MadePart);
  }

  /// The plan's chunks and parts.
  void finish(BatchPlan& plan);

 private:
  /// Consecutive array indices inside one chunk.
  struct Run {
    std::int64_t chunk, start, length;
    std::int64_t offset;  // bytes
  };
  struct Group {
    std::uint32_t variable;
    std::int64_t chunk;
    std::vector<Part> parts;
  };
  static void add_runs(const AxisPlacement& axis, const Row& row, std::int64_t chunk_length,
                       std::vector<Run>& runs);
  void add_paddings(const VariablePlacement& placement, const Row& row);
  /// The places along the dimensions that the placement repeats, each once: where its first box
  /// goes, in bytes from the sample's, and the others from there.
  std::vector<std::pair<std::int64_t, std::int32_t>> repeats_of(const VariablePlacement& placement,
                                                                const Row& row);
  void add_parts(const VariablePlacement& placement, std::int64_t base, std::int32_t repeat);
  void add_to_group(std::uint32_t variable, std::int64_t chunk, const Part& part);
  void add_made(const VariablePlacement& placement, const Part& part);
  static bool merge(Part& part, const Part& next);
  [[nodiscard]] Error too_long() const;

  const std::vector<const Variable*>& variables_;
  const PlanLimit limit_;
  const std::size_t samples_;
  std::vector<Group> groups_;
  std::size_t parts_ = 0;  // of all groups
  /// By a hash of (variable, chunk).
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_chunk_;
  std::vector<std::vector<Run>> runs_;  // per dimension, reused
  std::vector<Repeat> repeats_;         // distinct
  std::vector<Padding> paddings_;
  std::vector<std::int64_t> padded_;  // elements, by tensor
  std::vector<MadePart> made_;
};

}  // namespace batchfs
