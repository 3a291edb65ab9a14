#pragma once
// The batches of xbatcher.BatchGenerator, in its order: a row is a patch, and a batch is one sample.
// Source: xbatcher 0.4, generators.py.
//
// Every sliced dimension has patches; every batch takes a run of patches of each dimension, and
// holds their product, the last dimension fastest.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/dims.h"
#include "engine/dataset/dataset.h"
#include "engine/view/axes.h"
#include "engine/view/row_range.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Immutable, thread-safe.
class PatchRows {
 public:
  struct Sliced {
    std::string dim;
    std::int64_t size, stride, patches;
    std::int64_t per_batch = 1, batches = 1;
  };

  /// Slices the selection, and makes the sliced dimensions those that the windows of `axes` slide
  /// along. Throws invalid_argument and not_supported with the path in "xbatcher".
  /// `others`: the dimensions that are not input, in their order.
  PatchRows(const Dataset& dataset, const XbatcherSpec& spec, std::vector<std::string> others,
            ViewAxes& axes);

  const XbatcherSpec& spec() const { return spec_; }
  const std::vector<std::string>& others() const { return others_; }
  /// Dimensions that are not input are stacked to "sample" when there are several (the patches
  /// count).
  bool stacks() const { return others_.size() + (spec_.concat_input_dims ? 1 : 0) >= 2; }
  /// The place of a dimension among the sliced ones; -1: it is not sliced.
  int sliced_number(const std::string& dim) const;
  /// The length of a patch along a dimension.
  std::int64_t extent(const ViewAxes& axes, const std::string& dim) const;

  std::int64_t samples() const { return batches_; }
  std::int64_t epoch_samples() const { return batches_; }
  std::int64_t batch_size() const { return 1; }
  std::int64_t batches() const { return batches_; }
  std::int64_t row_count(std::int64_t batch) const;
  std::int64_t sample_count(std::int64_t) const { return 1; }
  bool needs_scan() const { return false; }
  std::vector<std::int64_t> samples_in(std::int64_t, std::int64_t batch, RowRange) const {
    return {batch};
  }
  /// The starts of a batch's first patch.
  void starts_of(std::int64_t sample, std::int64_t* starts) const;
  std::vector<Dims> starts_in(std::int64_t epoch, std::int64_t batch, RowRange range) const;

 private:
  void check_dim(const Dataset& dataset, const ViewAxes& axes, const std::string& dim,
                 const char* key) const;
  void slice(const Dataset& dataset, ViewAxes& axes, const std::string& dim, std::int64_t size,
             const char* key);
  void group_patches(const ViewAxes& axes);
  std::vector<std::pair<std::int64_t, std::int64_t>> patch_ranges(std::int64_t batch) const;

  const XbatcherSpec spec_;
  const std::vector<std::string> others_;
  std::vector<Sliced> sliced_;
  std::int64_t batches_ = 1;
};

/// The value of a dimension in a list of "xbatcher"; null: the list lacks it.
const std::int64_t* find_dim(const std::vector<std::pair<std::string, std::int64_t>>& list,
                             const std::string& dim);

}  // namespace batchfs
