#include "tools/cli/view_memory.h"

#include <algorithm>

#include "engine/base/limits.h"
#include "engine/dataset/dataset.h"

namespace batchfs {

void HeldByViews::add(const View& view) {
  lists_ += held_by(view);
  datasets_.insert(view.dataset().get());
  for (const auto& component : view.components()) add(*component);
}

std::uint64_t HeldByViews::bytes() const {
  std::uint64_t bytes = lists_;
  std::set<const Dataset*> counted;
  for (const Dataset* dataset : datasets_) bytes += dataset->held_labels(counted);
  return bytes;
}

std::uint64_t held_memory(const OpenedStore& opened, const HeldByViews& views) {
  const std::uint64_t free = kFreeMetadata - std::min(kFreeMetadata, opened.hierarchy->memory);
  const std::uint64_t of_views = views.bytes();
  return opened.held_memory() + of_views - std::min(of_views, free);
}

}  // namespace batchfs
