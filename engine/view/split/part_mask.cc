#include "engine/view/split/part_mask.h"

#include <algorithm>
#include <limits>

#include "engine/view/samples/missing.h"
#include "engine/view/split/part_boxes.h"

namespace batchfs {

PartMask::PartMask(const View& view) {
  if (!view.split()) return;
  view.visit_windows([&](const RestrictedView& restricted, const ViewScan&) {
    const PartBoxes boxes(restricted, *view.split(), view.part());
    std::vector<std::vector<FootprintRun>> runs;
    for (std::size_t a = 0; a < boxes.axes().size(); ++a) {
      const SplitAxis& axis = boxes.axes()[a];
      const Positions& selected = restricted.selected.at(axis.dim);
      dims_.push_back(axis.dim);
      runs.push_back(boxes.runs(a, axis.positions(), [](std::int64_t position) {
        return std::pair(position, position + 1);
      }));
      counts_.push_back(runs.back().size());
      std::vector<std::int32_t>& of_stored =
          runs_.emplace_back(static_cast<std::size_t>(restricted.dataset.dim_size(axis.dim)), -1);
      for (std::size_t r = 0; r < runs.back().size(); ++r)
        for (std::int64_t i = 0; i < runs.back()[r].count; ++i)
          of_stored[static_cast<std::size_t>(selected[runs.back()[r].first + i])] =
              static_cast<std::int32_t>(r);
    }
    for_each_box(runs, [&](const std::vector<const FootprintRun*>& box) {
      included_.push_back(boxes.verdict(box) == PartVerdict::sample);
    });
  });
}

VariableMask PartMask::of(const std::vector<std::string>& dims) const {
  VariableMask mask;
  std::vector<std::size_t> strides(dims_.size(), 0);  // of the mask; 0: the variable lacks it
  std::size_t size = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const auto found = std::find(dims_.begin(), dims_.end(), dims[d]);
    if (found == dims_.end()) continue;
    const auto a = static_cast<std::size_t>(found - dims_.begin());
    mask.axes_.insert(mask.axes_.begin(), {d, size, &runs_[a]});
    strides[a] = size;
    size *= counts_[a];
  }
  if (mask.axes_.empty()) return mask;
  mask.included_.resize(size);
  for (std::size_t box = 0; box < included_.size(); ++box) {
    if (!included_[box]) continue;
    std::size_t rest = box, at = 0;
    for (std::size_t a = dims_.size(); a-- > 0;) {
      at += rest % counts_[a] * strides[a];
      rest /= counts_[a];
    }
    mask.included_[at] = true;
  }
  return mask;
}

VariableMask PartMask::of_variable(const Variable& variable) const {
  VariableMask mask = of(variable.dims);
  if (variable.part < 0) return mask;
  for (VariableMask::Axis& axis : mask.axes_) {
    if (axis.dim != variable.concat_dim) continue;
    const Positions& part =
        variable.concat->parts[static_cast<std::size_t>(variable.part)].positions;
    auto own = std::make_shared<std::vector<std::int32_t>>(
        static_cast<std::size_t>(variable.array->shape()[axis.dim]), -1);
    const auto [first, end] = part.held();
    for (std::int64_t i = first; i < end; ++i)
      if (part[i] != Positions::kNone)
        (*own)[static_cast<std::size_t>(part[i])] = (*axis.runs)[static_cast<std::size_t>(i)];
    axis.runs = own.get();
    axis.own = std::move(own);
  }
  return mask;
}

std::int64_t VariableMask::blank(const Box& box,
                                 const std::vector<std::span<const std::int64_t>>& indices,
                                 double* values) const {
  const Dims strides = c_strides(box.shape, 1);
  std::int64_t blanked = 0;
  const auto descend = [&](auto&& self, std::size_t d, std::size_t axis, std::size_t at,
                           std::int64_t element) -> void {
    // The rest of the box lies in one run along every axis.
    if (axis == axes_.size() && included_[at]) return;
    if (d == indices.size()) {
      values[element] = std::numeric_limits<double>::quiet_NaN();
      ++blanked;
      return;
    }
    const bool along = axis < axes_.size() && axes_[axis].dim == d;
    for (const std::int64_t index : indices[d]) {
      std::size_t next = at;
      if (along)
        next += static_cast<std::size_t>(
                    (*axes_[axis].runs)[static_cast<std::size_t>(box.start[d] + index)]) *
                axes_[axis].stride;
      self(self, d + 1, axis + (along ? 1 : 0), next, element + index * strides[d]);
    }
  };
  if (!is_whole()) descend(descend, 0, 0, 0, 0);
  return blanked;
}

}  // namespace batchfs
