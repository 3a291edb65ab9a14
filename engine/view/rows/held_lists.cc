#include "engine/view/rows/held_lists.h"

#include "engine/view/list/weights.h"

namespace batchfs {

namespace {

/// A bit for each window, and a count for each block of 512.
std::uint64_t bytes_of(const SampleIndex& index) { return index.words().size_bytes() / 8 * 9; }

std::uint64_t bytes_of(const SampleList& list, const ListSpec& spec) {
  const std::size_t columns = list.columns().size() + spec.labels.size();  // which are tensors
  return static_cast<std::uint64_t>(list.rows()) * sizeof(std::int64_t) * (1 + columns);
}

/// Bounds of the groups: the view, its order, and the order of groups that differ have each theirs.
std::uint64_t bytes_of(const ChunkGroups& groups, Order::Shuffle shuffle) {
  std::uint64_t bounds = 0;
  for (const ChunkGroups::Axis& axis : groups.axes) bounds += axis.bounds.size();
  return (shuffle == Order::Shuffle::block ? 3 : 2) * bounds * sizeof(std::int64_t);
}

/// Texts of labels, one part of the selector each.
std::uint64_t bytes_of(const Selector& selector) {
  std::uint64_t bytes = selector.parts.size() * sizeof(SelectorPart);
  for (const SelectorPart& part : selector.parts)
    bytes += part.value.size() > 15 ? part.value.size() : 0;
  return bytes;
}

}  // namespace

std::uint64_t held_bytes(const HeldLists& lists) {
  constexpr std::uint64_t kPlace = sizeof(std::uint32_t), kEpochs = 3;
  const bool block = lists.spec.order.shuffle == Order::Shuffle::block;
  std::uint64_t bytes = bytes_of(lists.groups, lists.spec.order.shuffle);
  for (const WindowGrid::Starts& starts : lists.grid.allowed)
    if (starts != nullptr) bytes += starts->size() * sizeof(std::int64_t);
  for (const auto& [dim, positions] : lists.selected)
    if (!positions.is_range())
      bytes += static_cast<std::uint64_t>(positions.size()) * sizeof(std::int64_t);
  for (const auto& [dim, selector] : lists.spec.select) bytes += bytes_of(selector);
  if (lists.allowed != nullptr) bytes += bytes_of(*lists.allowed);
  if (lists.index != nullptr) {
    if (lists.index != lists.allowed) bytes += bytes_of(*lists.index);
    if (block) bytes += bytes_of(*lists.index);  // by the places of groups
  }
  if (lists.list != nullptr) {
    bytes += bytes_of(*lists.list, *lists.spec.list);
    if (block) bytes += static_cast<std::uint64_t>(lists.samples) * kPlace;
  }
  if (lists.by != nullptr)
    for (std::size_t w = 0; w < lists.grid.counts.size(); ++w)
      bytes += lists.by->along(w).size() * sizeof(std::int64_t);
  if (lists.spec.weights) {
    bytes += static_cast<std::uint64_t>(lists.samples) * sizeof(double);
    if (block) bytes += kEpochs * static_cast<std::uint64_t>(lists.epoch_samples) * kPlace;
  }
  return bytes;
}

}  // namespace batchfs
