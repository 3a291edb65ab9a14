#pragma once
// What a page shows of a view: its first batch, the labels of its samples, and what is in its
// channels.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/engine.h"
#include "engine/view/view.h"

namespace batchfs {

/// Of the values of a channel in the batch.
struct ShownChannel {
  std::string tensor, channel, units;
  std::int64_t count = 0, missing = 0;
  double mean = 0, std = 0, min = 0, max = 0;  // of the rest, if there is any
};

struct ShownTensor {
  std::string name, type;
  std::vector<std::string> dims;
  Dims shape;
};

/// Texts come from the store and from the view's file as they are: escape them.
struct ShownView {
  std::string name, file;
  std::int64_t samples = 0, batches = 0, batch_size = 0;
  std::vector<ShownTensor> tensors;
  std::vector<std::string> labels;  // of the first samples of the batch
  std::int64_t batch_samples = 0;
  std::vector<ShownChannel> channels;
  std::size_t more_channels = 0;  // that are left out
  std::vector<std::byte> png;     // empty: there is no picture
  std::int64_t width = 0, height = 0;
  std::string why_not;  // the batch was not read; else empty
  std::string note;     // a sentence about the picture; may be empty
};

/// Bytes of a batch in memory above which it is not read, beside a part of the engine's budget.
inline constexpr std::uint64_t kMaxShownBatch = UINT64_C(2) << 30;

/// Reads batch 0 of epoch 0. `view` has its samples. Errors of reading become `why_not`. Blocks;
/// not for workers of the engine.
ShownView look_at_view(Engine& engine, const std::shared_ptr<const View>& view,
                       const std::string& file);

}  // namespace batchfs
