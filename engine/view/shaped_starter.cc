#include "engine/view/shaped_starter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/view.h"

namespace batchfs {

namespace {

using Sizes = StarterWindow;

std::vector<const Variable*> variables_with(const Dataset& dataset, const Sizes& sizes) {
  std::vector<const Variable*> found;
  for (const Variable& variable : dataset.variables()) {
    const bool has_all = std::all_of(sizes.begin(), sizes.end(), [&](const auto& size) {
      return std::find(variable.dims.begin(), variable.dims.end(), size.first) !=
             variable.dims.end();
    });
    if (has_all && !find_unclear(sizes, dataset, variable) && !variable.is_coordinate &&
        fits_tensor(variable))
      found.push_back(&variable);
  }
  return found;
}

/// The last two dimensions of the variable with most values, and the size of a patch along them.
Sizes patch_sizes(const Dataset& dataset, const StarterShape& shape) {
  const Variable* largest = nullptr;
  for (const Variable* variable : variables_with(dataset, {}))
    if (largest == nullptr || element_count(variable->shape) > element_count(largest->shape))
      largest = variable;
  if (largest == nullptr || largest->dims.size() < 2)
    throw Error(ErrorCode::invalid_argument,
                "--patch needs a variable with two dimensions, and there is none");
  Sizes sizes;
  for (std::size_t d = largest->dims.size() - 2; d < largest->dims.size(); ++d) {
    const std::int64_t chunk = largest->array->grid().chunk_shape()[d];
    const std::int64_t size = shape.chunk_patch ? std::min(chunk, largest->shape[d]) : shape.patch;
    if (size > largest->shape[d])
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--patch {}: '{}' has {} positions", size, largest->dims[d],
                              largest->shape[d]));
    sizes.emplace_back(largest->dims[d], size);
  }
  return sizes;
}

/// Bytes of the steps along time in one sample; floats become float32.
double sample_bytes(const Variable& variable, const Sizes& sizes, double steps) {
  double bytes = steps * (variable.cf.decoded.is_float() ? 4 : variable.cf.decoded.itemsize);
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const auto sized = std::find_if(sizes.begin(), sizes.end(),
                                    [&](const auto& s) { return s.first == variable.dims[d]; });
    bytes *= static_cast<double>(sized == sizes.end() ? variable.shape[d] : sized->second);
  }
  return bytes;
}

Json steps_json(std::int64_t first, std::int64_t count) {
  Json steps = Json::array();
  for (std::int64_t i = 0; i < count; ++i) steps.push_back(first + i);
  return steps;
}

}  // namespace

StarterView shaped_starter_view(const Dataset& dataset, const std::string& name,
                                const StarterShape& shape, std::uint64_t max_batch_bytes) {
  // Without a limit it names the dimension of samples and leaves nothing out.
  StarterView result = starter_view(dataset, name, std::numeric_limits<std::uint64_t>::max());
  const std::string time = result.view.at("window").begin().key();
  const bool patches = shape.patch > 0 || shape.chunk_patch;
  Sizes sizes;
  if (patches) sizes = patch_sizes(dataset, shape);
  const bool along_time = std::none_of(sizes.begin(), sizes.end(),
                                       [&](const auto& size) { return size.first == time; });
  if (!along_time && (shape.time > 0 || shape.predict > 0))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no dimension of time besides those of the patches; leave "
                            "{} out",
                            shape.time > 0 ? "--time" : "--predict"));
  const std::int64_t before = std::max<std::int64_t>(shape.time, 1), after = shape.predict;
  if (along_time) {
    if (before + after > dataset.dim_size(time))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} steps in a sample: '{}' has {}", before + after, time,
                              dataset.dim_size(time)));
    sizes.insert(sizes.begin(), {time, after > 0 ? 1 : before});
  }
  const std::vector<const Variable*> variables = variables_with(dataset, sizes);
  if (variables.empty())
    throw Error(ErrorCode::not_found, fmt::format("no variable has the dimension '{}' and those of "
                                                  "the patches",
                                                  time));
  Json names = Json::array(), window = Json::object();
  double bytes = 0;
  for (const Variable* variable : variables) {
    names.push_back(variable->name);
    bytes += sample_bytes(*variable, sizes, after > 0 ? static_cast<double>(before + after) : 1);
  }
  for (const auto& [dim, size] : sizes) window[dim] = size;
  // Samples begin at every step, as training wants them.
  if (along_time && before > 1 && after == 0) window[time] = {{"size", before}, {"stride", 1}};
  std::int64_t samples = 32;
  while (samples > 1 && bytes * static_cast<double>(samples) > static_cast<double>(max_batch_bytes))
    samples /= 2;
  result.full_bytes = bytes * 32;
  if (samples < 32)
    result.reduced.push_back(fmt::format("{} samples in a batch instead of 32", samples));
  if (bytes > static_cast<double>(max_batch_bytes))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a sample of this shape would take {:.0f} MB; take a smaller --patch",
                            bytes / 1e6));

  Json view = Json::object();
  for (const auto& [key, value] : result.view.items()) {
    if (key == "variables" && after > 0) continue;  // the tensors name them
    view[key] = key == "variables" ? names : key == "window" ? window : value;
    if (key != "window" || after == 0) continue;
    const auto tensor = [&](std::int64_t first, std::int64_t count) {
      Json json = {{"variables", names}, {"offsets", {{time, steps_json(first, count)}}}};
      if (names.size() > 1) json["stack"] = "channel";
      return json;
    };
    view["tensors"] = {{"x", tensor(0, before)}, {"y", tensor(before, after)}};
  }
  view["batch"]["size"] = samples;
  result.view = std::move(view);
  return result;
}

}  // namespace batchfs
