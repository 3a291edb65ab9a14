#pragma once
// A first view of a dataset, for people to change.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/view.h"

namespace batchfs {

/// Sizes of windows by dimension.
using StarterWindow = std::vector<std::pair<std::string, std::int64_t>>;

/// A dimension of the variable without a window that repeats one with a window; views refuse that.
std::optional<std::string> find_unclear(const StarterWindow& window, const Dataset& dataset,
                                        const Variable& variable);

struct StarterView {
  Json view;
  /// The reductions that make a batch fit, each a clause: "4 samples in a batch instead of 32".
  std::vector<std::string> reduced;
  double full_bytes = 0;  // of a batch before that
};

/// Batches of up to 32 samples along time (or the first dimension of the largest variable) of every
/// variable that has this dimension. If such a batch takes more than `max_batch_bytes`, it has
/// fewer samples, then fewer variables, then a window along space. Throws not_found if no variable
/// can be in a tensor.
StarterView starter_view(const Dataset& dataset, const std::string& name,
                         std::uint64_t max_batch_bytes = 256 << 20);

}  // namespace batchfs
