#pragma once
// Mixtures whose views stand in their own file.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/mix/mix_spec.h"
#include "engine/view/mixed_view.h"
#include "engine/view/spec.h"
#include "engine/view/view.h"

namespace batchfs {

/// `datasets`: one for each view of the mixture.
inline std::shared_ptr<const View> parse_mixture(
    const std::vector<std::shared_ptr<const Dataset>>& datasets, const std::string& json) {
  MixSpec spec = parse_mix_spec(json, "given", "file.json");
  std::vector<std::shared_ptr<const View>> views;
  for (std::size_t c = 0; c < spec.components.size(); ++c) {
    const MixComponent& own = spec.components[c];
    views.push_back(
        View::parse(datasets.at(c), own.view.dump(), own.name, own.path,
                    {.mixed = MixedIn{spec.view.batch_size, spec.view.formats, own.name}}));
  }
  return make_mixed_view(std::move(spec), std::move(views));
}

}  // namespace batchfs
