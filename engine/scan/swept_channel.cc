#include "engine/scan/swept_channel.h"

#include <algorithm>
#include <utility>

#include "engine/scan/operand_reads.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/normalize_rule.h"
#include "engine/view/rows/reached.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

std::optional<NormalizeSpec> scanned_rule(const View& view) {
  const Json document = resolved_view(view);
  const auto normalize = JsonRef(document, "").find("normalize");
  return normalize ? std::optional(parse_normalize_rule(*normalize)) : std::nullopt;
}

void take_logarithms(const NormalizeSpec& rule, bool applies, SweptChannel& channel) {
  if (!applies || !rule.log_scale) return;
  channel.log_scale = rule.log_scale;
  channel.source = logarithms_of(std::move(channel.source), *rule.log_scale);
}

namespace {

void take(Reached reached, SweptChannel& channel) {
  channel.reached = std::move(reached.positions);
  if (reached.elements != nullptr)
    channel.mask = std::make_shared<const ReachedMask>(std::move(reached.elements));
}

}  // namespace

SweptChannel swept_variable(const View& view, std::uint32_t number, const StartTable* starts) {
  const Variable& variable = *view.variables()[number];
  SweptChannel result{variable.name, variable.dims, array_source(variable), nullptr, {}, {}};
  for (std::size_t d = 0; d < variable.dims.size(); ++d)
    result.selected.push_back(view.tensor_set().stored[number][d]);
  if (starts != nullptr)
    take(reached_by_samples(view, number, *starts), result);
  else
    result.reached = positions_selected(view, number);
  return result;
}

namespace {

/// Positions at which a variable has nothing, where its channel is padding, are not reached.
void leave_out_padding(const Variable& operand, SweptChannel& channel) {
  const OperandReads reads(operand);
  for (std::size_t d = 0; !reads.is_direct() && d < operand.dims.size(); ++d) {
    const auto at = static_cast<std::size_t>(
        std::find(channel.dims.begin(), channel.dims.end(), operand.dims[d]) -
        channel.dims.begin());
    Positions& reached = channel.reached[at];
    std::vector<std::int64_t> left;
    for (std::int64_t i = 0; i < reached.size(); ++i)
      if (reads.has(d, reached[i])) left.push_back(reached[i]);
    if (static_cast<std::int64_t>(left.size()) < reached.size())
      reached = Positions::list(std::move(left));
  }
}

}  // namespace

SweptChannel swept_made(const View& view, std::uint32_t number, const StartTable& starts) {
  const Variable& variable = view.tensor_set().made[number].variable();
  SweptChannel result{variable.name, variable.dims, made_source(view, number), nullptr, {}, {}};
  for (const std::string& dim : variable.dims) result.selected.push_back(view.axes().along(dim));
  take(reached_of_made(view, number, starts), result);
  for (const std::string& name : view.tensor_set().made[number].spec().of)
    leave_out_padding(view.dataset()->variable(name), result);
  return result;
}

}  // namespace batchfs
