#pragma once
// The input of statistics: a variable of a view, or one of its made channels.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/scan/reached_mask.h"
#include "engine/scan/sweep_source.h"
#include "engine/view/normalize.h"
#include "engine/view/samples/start_table.h"
#include "engine/view/view.h"

namespace batchfs {

struct SweptChannel {
  std::string name;
  std::vector<std::string> dims;
  std::shared_ptr<const SweepSource> source;
  /// Leaves out elements at positions that are reached; null: none.
  std::shared_ptr<const ReachedMask> mask;
  /// Per dimension the view's selection, which may have gaps, and the part of it that samples
  /// reach.
  std::vector<Positions> selected, reached;
  /// The scale of the logarithms that `source` has in place of the values: take_logarithms().
  std::optional<double> log_scale = {};
};

/// "normalize" of the view without its numbers; nullopt: it has none. Precondition: the view is
/// parsed as decoded.
std::optional<NormalizeSpec> scanned_rule(const View& view);

/// With "log1p" for the channel, its values become their logarithms.
void take_logarithms(const NormalizeSpec& rule, bool applies, SweptChannel& channel);

/// By its number in View::variables(). The view outlives it. `starts`: sample_starts(); null for
/// views whose samples leave nothing of the selection out.
SweptChannel swept_variable(const View& view, std::uint32_t number, const StartTable* starts);
/// Finds it by its number in TensorSet::made. Otherwise the same; throws what made_source() throws.
SweptChannel swept_made(const View& view, std::uint32_t number, const StartTable& starts);

}  // namespace batchfs
