#include "engine/view/sample_spec.h"

#include <fmt/format.h>

#include "engine/view/view_hints.h"

namespace batchfs {

SampleSpec parse_samples(const JsonRef& json) {
  SampleSpec spec;
  allow_only(json, {"spacing"}, view_hints::kSamples);
  if (const auto spacing = json.find("spacing")) {
    for (const auto& [dim, step] : spacing->members()) {
      spec.spacing.push_back({dim, read_duration(step), step.path()});
      if (spec.spacing.back().step.is_zero())
        throw step.error(fmt::format("'{}': labels cannot be 0 apart", step.string()));
    }
    if (spec.spacing.empty()) throw spacing->error("name at least one dimension");
  }
  return spec;
}

}  // namespace batchfs
