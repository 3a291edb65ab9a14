#pragma once
// Which batch a reader asks for.

#include <cstdint>
#include <memory>
#include <tuple>

#include "engine/pipeline/batch_format.h"
#include "engine/view/view.h"

namespace batchfs {

/// Identifies a batch for all of its readers: view, format, epoch, global batch.
using BatchKey = std::tuple<const View*, const BatchFormat*, std::int64_t, std::int64_t>;

/// A batch that a reader asks for or the prefetcher wants.
struct BatchRequest {
  std::shared_ptr<const View> view;
  const BatchFormat* format = nullptr;
  std::int64_t epoch = 0;
  std::int64_t batch = 0;  // of the rank; the global batch is batch * world + rank
  std::int64_t rank = 0, world = 1;

  std::int64_t global_batch() const { return batch * world + rank; }
  BatchKey key() const { return {view.get(), format, epoch, global_batch()}; }
};

}  // namespace batchfs
