#pragma once
// Memory of the budget that opened stores and their views keep.

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/view.h"
#include "tools/cli/store_options.h"

namespace batchfs {

/// Labels of coordinates, and lists of samples.
class HeldByViews {
 public:
  HeldByViews() = default;
  explicit HeldByViews(const std::vector<std::shared_ptr<const View>>& views) {
    for (const auto& view : views) add(*view);
  }
  void add(const View& view);
  std::uint64_t bytes() const;

 private:
  std::uint64_t lists_ = 0;
  std::set<const Dataset*> datasets_;
};

/// Bytes of the budget that a store and views of it take: what they keep beyond kFreeMetadata.
std::uint64_t held_memory(const OpenedStore& opened, const HeldByViews& views);
inline std::uint64_t held_memory(const OpenedStore& opened,
                                 const std::vector<std::shared_ptr<const View>>& views) {
  return held_memory(opened, HeldByViews(views));
}

}  // namespace batchfs
