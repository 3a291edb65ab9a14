#include "engine/view/samples/reach.h"

#include <algorithm>
#include <optional>

namespace batchfs {

std::pair<std::int64_t, std::int64_t> Reach::footprint(std::int64_t start) const {
  std::int64_t low = INT64_MAX, high = INT64_MIN;
  if (end > begin) low = start + begin, high = start + end;
  for (const Labelled& each : labelled)
    for (std::size_t o = 0; o < each.labels->size(); ++o) {
      const std::int64_t first = each.labels->first(o, start);
      low = std::min(low, first);
      high = std::max(high, first + size);
    }
  return {low, high};
}

bool Reach::Lacking::touches(std::int64_t start, std::int64_t size) const {
  return std::any_of(offsets.begin(), offsets.end(), [&](std::int64_t step) {
    return missing->count(start + step, start + step + size) > 0;
  });
}

Reach reach_of(const std::string& dim, std::int64_t size,
               const std::vector<TensorDefinition>& tensors, const std::vector<OffsetList>& reserve,
               const Dataset& dataset) {
  const auto has_dim_of_window = [&](const std::string& name) {
    const Variable* variable = dataset.find(name);
    return variable != nullptr && std::count(variable->dims.begin(), variable->dims.end(), dim) > 0;
  };
  Reach reach{.size = size};
  const auto include = [&](std::int64_t least, std::int64_t most) {
    const bool first = reach.end <= reach.begin;
    reach.begin = first ? least : std::min(reach.begin, least);
    reach.end = first ? most + size : std::max(reach.end, most + size);
  };
  bool any = false;
  for (const TensorDefinition& tensor : tensors) {
    const bool makes =
        std::any_of(tensor.made.begin(), tensor.made.end(), [&](const MadeSpec& made) {
          return made.kind->needs_time || tensor.offsets_along(dim) != nullptr ||
                 tensor.by_label_along(dim) != nullptr;
        });
    const bool repeats =
        tensor.broadcast &&
        (tensor.offsets_along(dim) != nullptr || tensor.by_label_along(dim) != nullptr ||
         (tensor.dims && std::count(tensor.dims->begin(), tensor.dims->end(), dim) > 0));
    if (!makes && !repeats &&
        std::none_of(tensor.variables.begin(), tensor.variables.end(), has_dim_of_window))
      continue;
    any = true;
    if (const auto labels = tensor.by_label_along(dim)) {
      std::string path = tensor.path;
      for (const OffsetList& list : tensor.durations)
        if (list.dim == dim) path = list.path;
      reach.labelled.push_back({"offsets", path, labels});
    } else if (const auto* steps = tensor.offsets_along(dim)) {
      const auto [least, most] = std::minmax_element(steps->begin(), steps->end());
      include(*least, *most);
    } else {
      include(0, 0);
    }
  }
  if (!any) include(0, 0);
  for (const OffsetList& list : reserve)
    if (list.dim == dim)
      for (const std::int64_t step : list.steps) include(step, step);
  return reach;
}

MarkedCounts::MarkedCounts(const std::vector<bool>& marked, bool circle) : circle_(circle) {
  before_.reserve(marked.size() + 1);
  before_.push_back(0);
  for (const bool mark : marked) before_.push_back(before_.back() + (mark ? 1 : 0));
}

std::int64_t MarkedCounts::before(std::int64_t position) const {
  const auto length = static_cast<std::int64_t>(before_.size()) - 1;
  if (!circle_ || length == 0)
    return before_[static_cast<std::size_t>(std::clamp<std::int64_t>(position, 0, length))];
  std::int64_t turns = position / length, rest = position % length;
  if (rest < 0) rest += length, --turns;
  return turns * all() + before_[static_cast<std::size_t>(rest)];
}

std::int64_t MarkedCounts::count(std::int64_t begin, std::int64_t end) const {
  return end <= begin ? 0 : before(end) - before(begin);
}

}  // namespace batchfs
