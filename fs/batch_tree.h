#pragma once
// The files of one batch, by name: what an epoch directory lists for each batch, given the view's
// formats.
//
// Each file or directory of a batch has a slot, a small number that is the same for every batch of
// the view; inode numbers are made of it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/pipeline/batch_format.h"
#include "engine/view/view.h"

namespace batchfs {

struct BatchSlot {
  enum class Content : std::uint8_t {
    directory,
    provenance,   // batch-….json
    tensor_file,  // a file of `format`, assembled
    text,         // zarr metadata and coordinates, made when asked for
  };
  static constexpr std::uint32_t kEpochDirectory = UINT32_MAX;

  std::uint32_t parent = kEpochDirectory;  // the slot of its directory
  /// Below the epoch directory: what follows "batch-000000" (".npy", ".zarr", ""); else the whole
  /// name.
  std::string name;
  Content content = Content::directory;
  const BatchFormat* format = nullptr;  // tensor_file
  std::uint32_t file = 0;               // tensor_file: index in the layout
};

/// Immutable.
class BatchTree {
 public:
  /// `snapshot`: what provenance says of the store's state, if it is not null.
  explicit BatchTree(std::shared_ptr<const View> view, Json snapshot = nullptr);

  const std::vector<BatchSlot>& slots() const { return slots_; }
  /// Slots directly below the epoch directory, in listing order.
  const std::vector<std::uint32_t>& top() const { return top_; }
  /// Slots directly below a directory slot.
  std::vector<std::uint32_t> children(std::uint32_t slot) const;

  /// The contents of a text slot.
  std::string text(std::uint32_t slot, std::int64_t epoch, std::int64_t batch) const;

 private:
  std::uint32_t add(BatchSlot slot);
  std::shared_ptr<const View> view_;
  Json snapshot_;
  std::vector<BatchSlot> slots_;
  std::vector<std::uint32_t> top_;
};

}  // namespace batchfs
