#pragma once
// One view on a page: its first batch, the labels of its samples, and statistics of its channels.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/engine.h"
#include "engine/view/view.h"

namespace batchfs {

/// Statistics of a channel's values in the batch.
struct ShownChannel {
  std::string tensor, channel, units;
  std::int64_t count = 0, missing = 0;
  double mean = 0, std = 0, min = 0, max = 0;  // of the other values, if any
};

struct ShownTensor {
  std::string name, type;
  std::vector<std::string> dims;
  Dims shape;
};

/// Texts are unescaped contents of the store and the view's file: escape them.
struct ShownView {
  std::string name, file;
  std::int64_t samples = 0, batches = 0, batch_size = 0;
  std::vector<ShownTensor> tensors;
  std::vector<std::string> labels;  // of the first samples of the batch
  std::int64_t batch_samples = 0;
  std::vector<ShownChannel> channels;
  std::size_t more_channels = 0;  // left out
  std::vector<std::byte> png;     // empty: no picture
  std::int64_t width = 0, height = 0;
  std::string why_not;  // why the batch was not read; else empty
  std::string note;     // a sentence about the picture; may be empty
};

/// Size in memory above which a batch is not read; a part of the engine's budget is another limit.
inline constexpr std::uint64_t kMaxShownBatch = UINT64_C(2) << 30;

/// Reads batch 0 of epoch 0. Precondition: `view` has its samples. Errors of reading become
/// `why_not`. Blocks; not for workers of the engine.
ShownView look_at_view(Engine& engine, const std::shared_ptr<const View>& view,
                       const std::string& file);

}  // namespace batchfs
