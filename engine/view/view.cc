#include "engine/view/view.h"

#include "engine/view/base_view.h"

namespace batchfs {

std::shared_ptr<const View> View::parse(std::shared_ptr<const Dataset> dataset, const std::string& json,
                                        const std::string& name, const std::string& where,
                                        const ViewOptions& options) {
  ViewSpec spec = parse_view_spec(json, name, where, options);
  try {
    return spec.xbatcher ? make_xbatcher_view(std::move(dataset), std::move(spec))
                         : make_window_view(std::move(dataset), std::move(spec));
  } catch (Error& error) {
    throw error.at(where);
  }
}

Json starter_view(const Dataset& dataset, const std::string& name) {
  // The dimension to sample along: time if there is one, else the first of the largest variable.
  const Variable* largest = nullptr;
  for (const Variable& variable : dataset.variables()) {
    if (variable.is_coordinate || !fits_tensor(variable) || variable.dims.empty()) continue;
    if (largest == nullptr || element_count(variable.shape) > element_count(largest->shape)) largest = &variable;
  }
  if (largest == nullptr)
    throw Error(ErrorCode::not_found, "there is no variable to make batches of; name a group of the store");
  std::string dim = largest->dims.front();
  for (const std::string& candidate : largest->dims)
    if (candidate == "time" || candidate == "init_time" || candidate == "date") dim = candidate;
  Json variables = Json::array();
  for (const Variable& variable : dataset.variables()) {
    const bool has = std::find(variable.dims.begin(), variable.dims.end(), dim) != variable.dims.end();
    if (has && !variable.is_coordinate && fits_tensor(variable)) variables.push_back(variable.name);
  }
  return {{"name", name},
          {"variables", std::move(variables)},
          {"window", {{dim, 1}}},
          {"batch", {{"size", std::min<std::int64_t>(32, dataset.dim_size(dim))}, {"remainder", "keep"}}},
          {"order", {{"shuffle", "global"}, {"seed", 0}}},
          {"epochs", 1},
          {"dtype", "float32"},
          {"formats", {"npy"}}};
}

}  // namespace batchfs
