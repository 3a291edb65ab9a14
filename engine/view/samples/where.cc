#include "engine/view/samples/where.h"

#include "engine/dataset/selection.h"

namespace batchfs {

std::vector<bool> rejected_positions(const SampleSpec::Where& where, const Dataset& dataset,
                                     const Positions& selected) {
  std::vector<bool> chosen(static_cast<std::size_t>(dataset.dim_size(where.dim)));
  const Positions found = select(dataset, where.dim, where.selector);
  for (std::int64_t i = 0; i < found.size(); ++i) chosen[static_cast<std::size_t>(found[i])] = true;
  std::vector<bool> rejected(static_cast<std::size_t>(selected.size()));
  for (std::size_t p = 0; p < rejected.size(); ++p)
    rejected[p] = !chosen[static_cast<std::size_t>(selected[static_cast<std::int64_t>(p)])];
  return rejected;
}

}  // namespace batchfs
