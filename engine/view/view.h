#pragma once
// A view: which batches there are. Parsed and checked against a dataset, immutable, thread-safe;
// nothing in it grows with the number of samples.
//
// File format: batchfs-view(5). engine/view/describe/ writes schema.json, view.json, batch-….json
// and coordinates.
//
//     auto view = View::parse(dataset, json, "train", "train.json");
//     for (std::int64_t batch = 0; batch < view->batches(); ++batch)
//       BatchPlan plan = view->plan(epoch, batch);  // the chunks, and where their elements go

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/json.h"
#include "engine/view/batch_plan.h"
#include "engine/view/row_range.h"

namespace batchfs {

class Dataset;
class MixedRows;
class PatchRows;
class SampleIndex;
class WindowRows;
struct NdArray;
struct Order;
struct RestrictedView;
struct TensorSet;
struct Variable;
struct ViewAxes;
struct ViewOptions;
struct ViewScan;
struct ViewSpec;

/// A coordinate after selection, for coords/ and schema.json.
struct ViewCoordinate {
  std::string name;
  std::vector<std::string> dims;
  std::shared_ptr<const NdArray> values;  // lives no longer than the view
  std::string note;                       // as CfDecoding's
  Json attributes = Json::object();       // see decoded_attributes()
};

/// The rows of batches: windows, which may be shuffled; patches, as xbatcher has them; or samples of
/// several views of windows.
using ViewRows = std::variant<std::shared_ptr<const WindowRows>, std::shared_ptr<const PatchRows>,
                              std::shared_ptr<const MixedRows>>;

/// The values that a view consists of, none of which is null. A changed view is a copy with another
/// value in it.
struct ViewParts {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const ViewSpec> spec;  // completed: durations as steps, digests of files
  std::shared_ptr<const ViewAxes> axes;
  std::shared_ptr<const TensorSet> tensors;
  std::shared_ptr<const std::vector<ViewCoordinate>> coordinates;
  ViewRows rows;
};

class View final {
 public:
  /// Parses and resolves. `name` is used when the file has none. Throws invalid_argument or
  /// not_found with the JSON path and the nearest valid name.
  static std::shared_ptr<const View> parse(std::shared_ptr<const Dataset> dataset,
                                           const std::string& json, const std::string& name,
                                           const std::string& where);
  static std::shared_ptr<const View> parse(std::shared_ptr<const Dataset> dataset,
                                           const std::string& json, const std::string& name,
                                           const std::string& where, const ViewOptions& options);
  explicit View(ViewParts parts) : parts_(std::move(parts)) {}

  const ViewParts& parts() const { return parts_; }
  const std::string& name() const;
  const ViewSpec& spec() const { return *parts_.spec; }
  const std::shared_ptr<const Dataset>& dataset() const { return parts_.dataset; }
  const ViewAxes& axes() const { return *parts_.axes; }
  const TensorSet& tensor_set() const { return *parts_.tensors; }
  const std::vector<TensorSpec>& tensors() const;
  const std::vector<const Variable*>& variables() const;
  const std::vector<ViewCoordinate>& coordinates() const { return *parts_.coordinates; }
  /// The coordinate along a dimension; null: it has none.
  const ViewCoordinate* coordinate(const std::string& dim) const;

  std::int64_t samples() const;
  /// Samples of an epoch: all, unless the view limits them.
  std::int64_t epoch_samples() const;
  std::int64_t batch_size() const;
  /// Global batches in an epoch.
  std::int64_t batches() const;
  /// Batches of a rank; with remainder "pad" the same for each, the last may repeat samples.
  std::int64_t rank_batches(std::int64_t rank, std::int64_t world) const;

  /// The rows as windows; null: this is another kind of view.
  const WindowRows* windows() const;
  /// The rows as xbatcher's patches; null: likewise.
  const PatchRows* patches() const;
  /// The rows as those of a mixture; null: likewise.
  const MixedRows* mixture() const;
  /// The views that a mixture mixes, in their order; empty: this is not a mixture.
  std::vector<std::shared_ptr<const View>> components() const;
  /// How samples are ordered; null where the view does not determine it (xbatcher, mixtures).
  const Order* order() const;

  /// Windows with missing values are not samples ("missing": "skip"), and which those are is not
  /// known yet: until with_samples() sets them, samples() counts every window and there are no
  /// plans.
  bool needs_scan() const;

  /// Rows of a batch: the windows that it consists of. A batch may have millions: lists of all of
  /// them are for callers whose own work is as large.
  std::int64_t row_count(std::int64_t batch) const;
  /// Samples of a batch: one for each row, unless a sample is made of all rows (xbatcher).
  std::int64_t sample_count(std::int64_t batch) const;
  /// The numbers of some of a batch's samples in row order; cheap.
  std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const;
  std::vector<std::int64_t> batch_samples(std::int64_t epoch, std::int64_t batch) const {
    return samples_in(epoch, batch, {0, sample_count(batch)});
  }
  /// Where the windows of some of a batch's rows begin: positions of the selection, per window
  /// dimension.
  std::vector<Dims> window_starts(std::int64_t epoch, std::int64_t batch, RowRange range) const;
  std::vector<Dims> window_starts(std::int64_t epoch, std::int64_t batch) const {
    return window_starts(epoch, batch, {0, row_count(batch)});
  }
  /// Writes where the window of a sample begins, a position per window dimension.
  void starts_of(std::int64_t sample, std::int64_t* starts) const;
  /// The sample numbers, followed by where each sample's window begins, sample by sample: a
  /// position of the selection per window dimension. Equally cheap.
  std::vector<std::int64_t> batch_windows(std::int64_t epoch, std::int64_t batch) const;

  /// Tensor shapes of a global batch (short at the end, with "keep"). Costs nothing.
  std::vector<Dims> shapes(std::int64_t batch) const;
  /// The plan of a global batch. A pure function of the view and its arguments. Batches past
  /// batches() exist for padded ranks only (remainder "pad"). Throws no_memory for a plan that
  /// takes more than the limit.
  BatchPlan plan(std::int64_t epoch, std::int64_t batch, PlanLimit limit = {}) const;

 private:
  const ViewParts parts_;
};

/// Calls `use` with the restrictions of a view's windows, before missing values do. Precondition: a
/// view of windows.
void visit_windows(const View& view,
                   const std::function<void(const RestrictedView&, const ViewScan&)>& use);
/// The inputs of scan_samples(). Precondition: a view of windows. They refer to the view.
ViewScan scan_of(const View& view);
/// Windows before restrictions; without those in dropped_windows() they are the samples.
std::int64_t all_windows(const View& view);
std::vector<std::pair<std::string, std::int64_t>> dropped_windows(const View& view);
/// Warnings for the user about the samples, one line each.
std::vector<std::string> view_warnings(const View& view);
/// Samples that the order mixes with each other: all, those of a run of groups, or one.
std::int64_t mixed_samples(const View& view);
/// Bytes of the lists of its samples that a view keeps in memory, without those of components.
std::uint64_t held_by(const View& view);

/// A view with its samples; null: every window is one, as for estimates. Throws when there are none,
/// internal for a view that skips nothing, or for an index of another view.
std::shared_ptr<const View> with_samples(const View& view,
                                         std::shared_ptr<const SampleIndex> index);
/// A mixture with the same views, whose samples are known now.
std::shared_ptr<const View> with_components(const View& mixture,
                                            std::vector<std::shared_ptr<const View>> components);
/// A view of windows in another order, with the same samples; a block order's buffer of 0 stands for
/// the default.
std::shared_ptr<const View> with_order(const View& view, const Order& order);

}  // namespace batchfs
