#include "engine/view/coarsen/coarsen_spec.h"

#include <array>

#include <fmt/format.h>

namespace batchfs {

namespace {

constexpr std::array<std::string_view, 4> kNames{"mean", "sum", "min", "max"};
constexpr std::int64_t kMaxFactor = 1 << 20;

CoarsenMethod method_of(const JsonRef& json) {
  const std::string name = json.string();
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<CoarsenMethod>(i);
  throw json.error(fmt::format("there is no method '{}'{}", name,
                               nearest_or_all(name, {kNames.begin(), kNames.end()})));
}

}  // namespace

std::string_view coarsen_method_name(CoarsenMethod method) {
  return kNames[static_cast<std::size_t>(method)];
}

std::vector<CoarsenStep> parse_coarsen(const JsonRef& json) {
  std::vector<CoarsenStep> steps;
  for (const auto& [dim, value] : json.members()) {
    CoarsenStep step{dim, 1, CoarsenMethod::mean, value.path()};
    if (value.is_object()) {
      value.allow_only({"size", "how"});
      step.size = value.at("size").integer(1, kMaxFactor);
      if (const auto how = value.find("how")) step.how = method_of(*how);
    } else {
      step.size = value.integer(1, kMaxFactor);
    }
    steps.push_back(std::move(step));
  }
  if (steps.empty()) throw json.error("name at least one dimension");
  return steps;
}

std::int64_t coarse_along(const std::vector<CoarsenStep>& steps, const std::string& dim) {
  for (const CoarsenStep& step : steps)
    if (step.dim == dim) return step.size;
  return 1;
}

Json coarsen_json(const std::vector<CoarsenStep>& steps) {
  Json result = Json::object();
  for (const CoarsenStep& step : steps)
    result[step.dim] = {{"size", step.size}, {"how", coarsen_method_name(step.how)}};
  return result;
}

}  // namespace batchfs
