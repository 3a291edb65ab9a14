#include "engine/view/samples/where.h"

#include "engine/dataset/selection.h"

namespace batchfs {

std::vector<bool> rejected_positions(const SampleSpec::Where& where, const Dataset& dataset,
                                     const Positions& selected) {
  std::vector<bool> rejected(static_cast<std::size_t>(selected.size()), true);
  const Positions found = select_within(dataset, where.dim, where.selector, selected);
  for (std::int64_t i = 0; i < found.size(); ++i)
    rejected[static_cast<std::size_t>(found[i])] = false;
  return rejected;
}

}  // namespace batchfs
