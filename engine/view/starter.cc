#include "engine/view/starter.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/view/samples/time_steps.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/view.h"

namespace batchfs {

namespace {

constexpr std::int64_t kStarterSamples = 32;  // of a batch, unless there is a reason for fewer
constexpr std::int64_t kMinSamples = 4;       // before variables are left out
constexpr std::int64_t kMinWindow = 16;       // along space

bool has_dim(const Variable& variable, const std::string& dim) {
  return std::find(variable.dims.begin(), variable.dims.end(), dim) != variable.dims.end();
}

/// The dimension to sample along: time if there is one, else the first of the largest variable.
std::string sample_dim(const Dataset& dataset) {
  const Variable* largest = nullptr;
  for (const Variable& variable : dataset.variables()) {
    if (variable.is_coordinate || !fits_tensor(variable) || variable.dims.empty()) continue;
    if (largest == nullptr || element_count(variable.shape) > element_count(largest->shape))
      largest = &variable;
  }
  if (largest == nullptr)
    throw Error(ErrorCode::not_found, "there is no variable to make batches of");
  std::string dim = largest->dims.front();
  for (const std::string& candidate : largest->dims)
    if (candidate == "time" || candidate == "init_time" || candidate == "date") dim = candidate;
  // Windows along the repetition of a dimension leave the dimension itself whole.
  for (const std::string& candidate : largest->dims)
    if (dataset.original_dim(candidate) == dim) dim = candidate;
  return dim;
}

/// The step of regular times along the dimension. If the coordinate cannot be read, the starter
/// view is written without it: reading the view then reports why.
std::optional<Duration> regular_step(const Dataset& dataset, const std::string& dim) {
  if (!has_times(dataset, dim)) return std::nullopt;
  try {
    return TimeSteps(dataset, dim, Positions::range(0, dataset.dim_size(dim)), dim).regular_step();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Bytes of one sample of a variable. Floats become float32.
double sample_bytes(const Variable& variable, const StarterWindow& window) {
  double bytes = variable.cf.decoded.is_float() ? 4 : variable.cf.decoded.itemsize;
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const auto windowed = std::find_if(window.begin(), window.end(),
                                       [&](const auto& w) { return w.first == variable.dims[d]; });
    bytes *= static_cast<double>(windowed == window.end() ? variable.shape[d] : windowed->second);
  }
  return bytes;
}

/// Halves the longest dimensions of a variable, first the last two, until a sample of it takes at
/// most `bytes`.
void cut_space(const Variable& variable, double bytes, StarterWindow& window) {
  std::vector<std::pair<std::string, std::int64_t>> space;
  for (std::size_t d = 0; d < variable.dims.size(); ++d)
    if (variable.dims[d] != window.front().first)
      space.emplace_back(variable.dims[d], variable.shape[d]);
  const std::size_t inner = space.size() - std::min<std::size_t>(space.size(), 2);
  const StarterWindow given = window;
  for (const std::int64_t least : {kMinWindow, std::int64_t{1}}) {
    for (const std::size_t first : {inner, std::size_t{0}})
      while (sample_bytes(variable, window) > bytes) {
        const auto longest =
            std::max_element(space.begin() + static_cast<std::ptrdiff_t>(first), space.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        if (longest == space.end() || longest->second / 2 < least) break;
        // Powers of two, as patches usually are.
        std::int64_t size = 1;
        while (size * 2 < longest->second) size *= 2;
        longest->second = size;
        window = given;
        for (std::size_t d = 0; d < space.size(); ++d)
          if (space[d].second <
              variable.shape[static_cast<std::size_t>(
                  std::find(variable.dims.begin(), variable.dims.end(), space[d].first) -
                  variable.dims.begin())])
            window.push_back(space[d]);
      }
  }
}

}  // namespace

std::optional<std::string> find_unclear(const StarterWindow& window, const Dataset& dataset,
                                        const Variable& variable) {
  const auto has = [&window](const std::string& dim) {
    return std::any_of(window.begin(), window.end(),
                       [&dim](const auto& each) { return each.first == dim; });
  };
  for (const std::string& dim : variable.dims)
    if (!has(dim) && has(dataset.original_dim(dim))) return dim;
  return std::nullopt;
}

StarterView starter_view(const Dataset& dataset, const std::string& name,
                         std::uint64_t max_batch_bytes) {
  const std::string dim = sample_dim(dataset);
  const auto limit = static_cast<double>(max_batch_bytes);
  StarterWindow window = {{dim, 1}};
  std::vector<const Variable*> all;
  double bytes = 0;
  for (const Variable& variable : dataset.variables())
    if (has_dim(variable, dim) && !find_unclear(window, dataset, variable) &&
        !variable.is_coordinate && fits_tensor(variable)) {
      all.push_back(&variable);
      bytes += sample_bytes(variable, window);
    }
  const std::int64_t full =
      std::max<std::int64_t>(std::min(kStarterSamples, dataset.dim_size(dim)), 1);
  StarterView result;
  result.full_bytes = bytes * static_cast<double>(full);

  const std::int64_t least = std::min(full, kMinSamples);
  std::vector<const Variable*> chosen = all;
  if (bytes * static_cast<double>(least) > limit) {
    chosen.clear();
    bytes = 0;
    for (const Variable* variable : all) {
      const double more = sample_bytes(*variable, window);
      if ((bytes + more) * static_cast<double>(least) > limit) continue;
      chosen.push_back(variable);
      bytes += more;
    }
  }
  if (chosen.empty()) {
    chosen = {*std::min_element(all.begin(), all.end(), [&](const Variable* a, const Variable* b) {
      return sample_bytes(*a, window) < sample_bytes(*b, window);
    })};
    cut_space(*chosen.front(), limit / static_cast<double>(least), window);
    while (const auto repeated = find_unclear(window, dataset, *chosen.front()))
      window.emplace_back(*repeated, dataset.dim_size(*repeated));
    bytes = sample_bytes(*chosen.front(), window);
  }
  std::int64_t samples = full;
  if (bytes * static_cast<double>(full) > limit)
    for (samples = 1; bytes * static_cast<double>(samples * 2) <= limit;) samples *= 2;

  if (samples < full)
    result.reduced.push_back(fmt::format("{} samples in a batch instead of {}", samples, full));
  if (chosen.size() < all.size())
    result.reduced.push_back(fmt::format("{} of {} variables", chosen.size(), all.size()));
  for (std::size_t w = 1; w < window.size(); ++w)
    result.reduced.push_back(fmt::format("a window of {} along {} instead of all {}",
                                         window[w].second, window[w].first,
                                         dataset.dim_size(window[w].first)));
  Json variables = Json::array(), windows = Json::object();
  for (const Variable* variable : chosen) variables.push_back(variable->name);
  for (const auto& [along, size] : window) windows[along] = size;
  result.view = {
      {"name", name}, {"variables", std::move(variables)}, {"window", std::move(windows)}};
  if (const auto step = regular_step(dataset, dim))
    result.view["samples"] = {{"spacing", {{dim, duration_text(*step)}}}};
  result.view.update(Json{{"batch", {{"size", samples}, {"remainder", "keep"}}},
                          {"order", {{"shuffle", "global"}, {"seed", 0}}},
                          {"epochs", 1},
                          {"dtype", "float32"},
                          {"formats", {"npy"}}});
  return result;
}

}  // namespace batchfs
