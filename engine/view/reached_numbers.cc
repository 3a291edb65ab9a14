#include "engine/view/reached_numbers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "engine/view/list/sample_starts.h"
#include "engine/view/normalize_rule.h"
#include "engine/view/samples/reached.h"
#include "engine/view/samples/reached_elements.h"

namespace batchfs {

namespace {

std::map<std::string, Positions> selected_of(const View& view, const Variable& variable) {
  std::map<std::string, Positions> selected;
  for (const std::string& dim : variable.dims) selected.emplace(dim, view.selected(dim));
  return selected;
}

}  // namespace

void check_numbers(const View& view, const NormalizeSpec& spec,
                   const std::vector<std::uint32_t>& variables) {
  std::optional<StartTable> known;
  const auto starts = [&]() -> const StartTable& {
    if (!known) known = sample_starts(view.scan(), *view.dataset());
    return *known;
  };
  for (const std::uint32_t v : variables) {
    const Variable& variable = *view.variables()[v];
    check_normalization(spec, *view.dataset(), variable, selected_of(view, variable),
                        [&](const std::vector<std::size_t>& dims) {
                          return view.order() == nullptr
                                     ? Reached{positions_selected(view, v), nullptr}
                                     : reached_by_samples(view, v, starts(), &dims);
                        });
  }
  const std::vector<std::string> normalized = view.made().normalized();
  for (std::uint32_t m = 0; m < view.made().size(); ++m) {
    const Variable& variable = view.made()[m].variable();
    if (std::find(normalized.begin(), normalized.end(), variable.name) == normalized.end())
      continue;
    check_normalization(spec, *view.dataset(), variable, selected_of(view, variable),
                        [&](const std::vector<std::size_t>& dims) {
                          return reached_of_made(view, m, starts(), &dims);
                        });
  }
}

}  // namespace batchfs
