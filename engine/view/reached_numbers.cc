#include "engine/view/reached_numbers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "engine/view/list/sample_starts.h"
#include "engine/view/normalize_rule.h"
#include "engine/view/rows/reached.h"
#include "engine/view/rows/reached_elements.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

std::map<std::string, Positions> selected_of(const View& view, const Variable& variable) {
  std::map<std::string, Positions> selected;
  for (const std::string& dim : variable.dims) selected.emplace(dim, view.axes().along(dim));
  return selected;
}

}  // namespace

void check_numbers(const View& view) {
  if (!view.spec().normalize) return;
  const NormalizeSpec& spec = *view.spec().normalize;
  std::optional<StartTable> known;
  const auto starts = [&]() -> const StartTable& {
    if (!known) known = sample_starts(scan_of(view), *view.dataset());
    return *known;
  };
  for (const auto& [v, normalization] : view.tensor_set().normalizations) {
    const Variable& variable = *view.variables()[v];
    check_normalization(spec, *view.dataset(), variable, selected_of(view, variable),
                        [&, v = v](const std::vector<std::size_t>& dims) {
                          return view.order() == nullptr
                                     ? Reached{positions_selected(view, v), nullptr}
                                     : reached_by_samples(view, v, starts(), &dims);
                        });
  }
  const MadeChannels& made = view.tensor_set().made;
  const std::vector<std::string> normalized = made.normalized();
  for (std::uint32_t m = 0; m < made.size(); ++m) {
    const Variable& variable = made[m].variable();
    if (std::find(normalized.begin(), normalized.end(), variable.name) == normalized.end())
      continue;
    check_normalization(spec, *view.dataset(), variable, selected_of(view, variable),
                        [&](const std::vector<std::size_t>& dims) {
                          return reached_of_made(view, m, starts(), &dims);
                        });
  }
}

}  // namespace batchfs
