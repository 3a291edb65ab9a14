#include "gpu/program/made_boxes.h"

#include "engine/base/rounding.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs::gpu {

namespace {

/// The kernel reads an element as one word.
constexpr std::uint64_t kAlignment = 16;

Dims strides_of(const MadeBoxes& boxes, const MadePart& made) {
  return c_strides(
      made.part.source.shape,
      static_cast<std::int64_t>(boxes.view->tensors()[made.part.tensor].type.itemsize));
}

}  // namespace

std::vector<MadeBoxes> made_boxes(const View& view, const BatchPlan& batch, std::uint64_t group) {
  std::vector<MadeBoxes> groups;
  for (const MadePart& made : batch.made) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(element_count(made.part.source.shape)) *
                                view.tensors()[made.part.tensor].type.itemsize;
    if (groups.empty() || groups.back().bytes + bytes > group) groups.push_back({&view, {}, 0});
    MadeBoxes& boxes = groups.back();
    const std::uint64_t begin = round_up<std::uint64_t>(boxes.bytes, kAlignment);
    boxes.boxes.push_back({made, begin});
    boxes.bytes = begin + bytes;
  }
  return groups;
}

void write(const MadeBoxes& boxes, std::byte* to) {
  const MadeChannels& channels = boxes.view->tensor_set().made;
  for (const MadeBoxes::Box& box : boxes.boxes) {
    const Part& part = box.made.part;
    channels[box.made.channel].write(part.source,
                                     *channels.converter(part.tensor, box.made.channel),
                                     to + box.begin, strides_of(boxes, box.made), nullptr);
  }
}

void add_made(GatherPlan& plan, const AssemblyTables& tables, const BatchPlan& batch,
              const MadeBoxes& boxes, std::uint64_t offset,
              std::span<const std::uint64_t> tensors) {
  for (const MadeBoxes::Box& box : boxes.boxes) {
    const Part& part = box.made.part;
    GatherPlan::Place source{offset + box.begin, strides_of(boxes, box.made)};
    GatherPlan::Place target{tensors[part.tensor] + static_cast<std::uint64_t>(part.offset),
                             part.strides};
    Dims shape = part.source.shape, entries;
    if (part.repeat >= 0)
      add_repeats(batch.repeats[static_cast<std::size_t>(part.repeat)], shape, source, target,
                  entries);
    plan.add(tables.pad_conversion(part.tensor), shape, source, 1, target, 0, entries);
  }
}

}  // namespace batchfs::gpu
