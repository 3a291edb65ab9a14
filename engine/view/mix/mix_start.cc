#include "engine/view/mix/mix_start.h"

#include <fmt/format.h>

namespace batchfs {

Json MixStart::json() const {
  if (left.empty()) return samples;
  return {{"samples", samples}, {"left", left}};
}

MixStart parse_mix_start(const JsonRef& json) {
  MixStart start;
  if (!json.is_object()) {
    start.samples = json.integer(0, kMaxMixSamples);
    return start;
  }
  json.allow_only({"samples", "left"});
  start.samples = json.at("samples").integer(0, kMaxMixSamples);
  const auto left = json.find("left");
  if (!left) return start;
  for (const JsonRef& ordinal : left->elements()) {
    start.left.push_back(ordinal.integer(0));
    if (start.left.back() >= start.samples)
      throw ordinal.error(
          fmt::format("{} is not below \"samples\", {}: what follows these is read "
                      "anyway",
                      start.left.back(), start.samples));
    if (start.left.size() > 1 && start.left.back() <= start.left[start.left.size() - 2])
      throw ordinal.error("the list is not ascending");
  }
  return start;
}

}  // namespace batchfs
