#pragma once
// The files of one batch, by name: what an epoch directory lists for each batch, given the view's
// formats.
//
// Each file or directory of a batch has a slot, a small number that is the same for every batch of
// the view; inode numbers are made of it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_source.h"
#include "engine/pipeline/batch_format.h"
#include "engine/view/plan/chunk_set.h"
#include "engine/view/view.h"
#include "fs/formats/zarr_batch.h"

namespace batchfs {

struct BatchSlot {
  enum class Content : std::uint8_t {
    directory,
    provenance,   // batch-….json
    tensor_file,  // a file of `format`, assembled
    zarr_file,    // metadata and coordinates, made when asked for
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

  /// The contents of the provenance slot. `reserve` is as for ProvenanceText.
  std::unique_ptr<TextSource> provenance(std::int64_t epoch, std::int64_t batch,
                                         ChunkSet::Reserve reserve) const;
  /// A file of the zarr format.
  ZarrBatchFile zarr_file(std::uint32_t slot, std::int64_t epoch, std::int64_t batch) const;

 private:
  std::uint32_t add(BatchSlot slot);
  std::shared_ptr<const View> view_;
  Json snapshot_;
  std::vector<BatchSlot> slots_;
  std::vector<std::uint32_t> top_;
};

}  // namespace batchfs
