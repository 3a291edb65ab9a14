#include "engine/view/reached_numbers.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/view/normalize_rule.h"
#include "engine/view/samples/reached.h"

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
  for (const std::uint32_t v : variables) {
    const Variable& variable = *view.variables()[v];
    check_normalization(spec, *view.dataset(), variable, selected_of(view, variable),
                        [&] { return positions_to_read(view, v); });
  }
  const std::vector<std::string> normalized = view.made().normalized();
  for (std::uint32_t m = 0; m < view.made().size(); ++m) {
    const Variable& variable = view.made()[m].variable();
    if (std::find(normalized.begin(), normalized.end(), variable.name) == normalized.end())
      continue;
    check_normalization(spec, *view.dataset(), variable, selected_of(view, variable),
                        [&] { return positions_of_made(view, m); });
  }
}

}  // namespace batchfs
