#include "engine/view/axes.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

ViewAxes::ViewAxes(const Dataset& dataset,
                   const std::vector<std::pair<std::string, Selector>>& select) {
  for (const auto& [dim, size] : dataset.dims()) selected.emplace(dim, Positions::range(0, size));
  for (const auto& [dim, selector] : select) {
    try {
      dataset.dim_size(dim);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("select.{}: {}", dim, error.why()));
    }
    selected.insert_or_assign(dim, batchfs::select(dataset, dim, selector));
  }
  for (const auto& [dim, original] : dataset.repeated_dims()) {
    const bool is_named =
        std::any_of(select.begin(), select.end(),
                    [&name = dim](const auto& each) { return each.first == name; });
    if (!is_named) selected.insert_or_assign(dim, along(original));
  }
}

}  // namespace batchfs
