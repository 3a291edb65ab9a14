#include "engine/scan/swept_channel.h"

#include "engine/view/samples/reached.h"

namespace batchfs {

SweptChannel swept_variable(const View& view, std::uint32_t number, const PartMask& part) {
  const Variable& variable = *view.variables()[number];
  SweptChannel result{variable.name,
                      variable.dims,
                      array_source(variable),
                      part.of_variable(variable),
                      {},
                      positions_to_read(view, number)};
  for (std::size_t d = 0; d < variable.dims.size(); ++d)
    result.selected.push_back(view.stored(number, d));
  return result;
}

SweptChannel swept_made(const View& view, std::uint32_t number, const PartMask& part) {
  const Variable& variable = view.made()[number].variable();
  ViewScan scan = view.scan();
  std::vector<VariablePlacement> placements;
  for (const auto* all : {scan.made, scan.coarsened})
    for (const VariablePlacement& placement : *all)
      if (placement.made && placement.variable == number) placements.push_back(placement);
  scan.placements = &placements;
  SweptChannel result{variable.name,
                      variable.dims,
                      made_source(view, number),
                      part.of(variable.dims),
                      {},
                      reached_positions(scan, number)};
  for (const std::string& dim : variable.dims) result.selected.push_back(view.selected(dim));
  return result;
}

}  // namespace batchfs
