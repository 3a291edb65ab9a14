#pragma once
// A view: which batches there are. Parsed and checked against a dataset, immutable, thread-safe;
// nothing in it grows with the number of samples.
//
// File format: batchfs-view(5).

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/dataset/dataset.h"
#include "engine/dataset/selection.h"
#include "engine/view/batch_coordinate.h"
#include "engine/view/batch_plan.h"
#include "engine/view/chunks/chunk_walk.h"
#include "engine/view/geometry.h"
#include "engine/view/made/assembled_channel.h"
#include "engine/view/made/channel_padding.h"
#include "engine/view/made/made_channels.h"
#include "engine/view/provenance/provenance_list.h"
#include "engine/view/row_range.h"
#include "engine/view/samples/joined_axes.h"
#include "engine/view/spec.h"
#include "engine/view/tensor_layout.h"

namespace batchfs {

class MixedView;
class SampleIndex;
struct RestrictedView;
struct ViewScan;

/// Windows that are not samples: how many each restriction left out, in the order of application.
using Dropped = std::vector<std::pair<std::string, std::int64_t>>;

/// The common part of all views. There are three kinds: views of windows, which may be shuffled,
/// those that produce the batches of xbatcher, see view_kinds.h, and mixtures of views of windows,
/// see mix/mixed_view.h.
class View {
  friend class MixedView;  // reads the members of its components

 public:
  /// Parses and resolves. `name` is used when the file has none. Throws invalid_argument or
  /// not_found with the JSON path and the nearest valid name.
  static std::shared_ptr<const View> parse(std::shared_ptr<const Dataset> dataset,
                                           const std::string& json, const std::string& name,
                                           const std::string& where,
                                           const ViewOptions& options = {});
  virtual ~View() = default;

  const std::string& name() const { return spec_.name; }
  const std::shared_ptr<const Dataset>& dataset() const { return dataset_; }
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  const std::vector<std::string>& formats() const { return spec_.formats; }
  virtual std::int64_t samples() const = 0;
  /// Samples of an epoch: all, unless the view limits them.
  virtual std::int64_t epoch_samples() const { return samples(); }
  virtual std::int64_t batch_size() const = 0;
  /// Global batches in an epoch.
  virtual std::int64_t batches() const = 0;
  /// Batches of a rank; with remainder "pad" the same for each, the last may repeat samples.
  std::int64_t rank_batches(std::int64_t rank, std::int64_t world) const;
  std::int64_t epochs() const { return spec_.epochs; }

  /// Windows before restrictions; without those in dropped() they are the samples.
  virtual std::int64_t windows() const { return samples(); }
  virtual Dropped dropped() const { return {}; }
  /// Warnings for the user about the samples, one line each.
  virtual std::vector<std::string> warnings() const { return {}; }

  /// The split that the view is a part of; nullopt: none.
  const std::optional<SplitSpec>& split() const { return spec_.split; }
  const SplitPart& part() const { return spec_.part; }
  /// Calls `use` with the restrictions of the view's windows, before missing values do; not for
  /// views without windows.
  using UseWindows = std::function<void(const RestrictedView& view, const ViewScan& scan)>;
  virtual void visit_windows(const UseWindows& use) const;

  /// Windows with missing values are not samples ("missing": "skip"), and which those are is not
  /// known yet: until with_samples() sets them, samples() counts every window and there are no
  /// plans.
  virtual bool needs_scan() const { return false; }
  /// The inputs of scan_samples() for a view that skips missing values.
  virtual ViewScan scan() const;
  /// This view with its samples; null: every window is one, as for estimates. Throws when there are
  /// none.
  virtual std::shared_ptr<const View> with_samples(std::shared_ptr<const SampleIndex> index) const;

  /// The views that a mixture mixes, in their order; empty: this is not a mixture.
  virtual std::vector<std::shared_ptr<const View>> components() const { return {}; }
  /// This mixture with the same views, whose samples are known now.
  virtual std::shared_ptr<const View> with_components(
      std::vector<std::shared_ptr<const View>> components) const;

  /// How samples are ordered; null where the view does not determine it (xbatcher).
  virtual const Order* order() const { return nullptr; }
  /// This view in another order, with the same samples; a block order's window of 0 stands for the
  /// default. Views whose order() is null have no other.
  virtual std::shared_ptr<const View> with_order(const Order& order) const;
  /// Samples that the order mixes with each other: all, those of a run of groups, or one.
  virtual std::int64_t mixed_samples() const { return 1; }
  /// Rows of a batch: the windows that it consists of. A batch may have millions: lists of all of
  /// them are for callers whose own work is as large.
  virtual std::int64_t row_count(std::int64_t batch) const = 0;
  /// Where the windows of some of a batch's rows begin: positions of the selection, per window
  /// dimension.
  std::vector<Dims> window_starts(std::int64_t epoch, std::int64_t batch, RowRange range) const;
  std::vector<Dims> window_starts(std::int64_t epoch, std::int64_t batch) const {
    return window_starts(epoch, batch, {0, row_count(batch)});
  }

  /// The view's selection along a dimension of the dataset.
  const Positions& selected(const std::string& dim) const { return selected_.at(dim); }

  /// The array indices of these positions along dimension `d` of a variable, by its number.
  const Positions& stored(std::uint32_t variable, std::size_t d) const {
    return stored_[variable][d];
  }

  /// Variables the parts come from, and how each is converted for each tensor it is in.
  const std::vector<const Variable*>& variables() const { return variables_; }
  const Converter& converter(std::uint32_t tensor, std::uint32_t variable) const {
    return *converters_.at({tensor, variable});
  }
  /// By tensor and variable. Tensors that select the same part of a variable share one.
  using Converters =
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const Converter>>;
  const Converters& converters() const { return converters_; }
  /// Channels that no store holds: BatchPlan::made.
  const MadeChannels& made() const { return made_; }
  /// Channels that are computed when all of their operands have arrived: BatchPlan::combined. The
  /// operands of number c lie in memory of their own, sample after sample: in a plan, tensor
  /// tensors().size() + c.
  using Combinations = std::vector<std::shared_ptr<const AssembledChannel>>;
  const Combinations& combinations() const { return combinations_; }

  /// Tensor shapes of a global batch (short at the end, with "keep"). Costs nothing.
  virtual std::vector<Dims> shapes(std::int64_t batch) const = 0;

  /// The plan of a global batch. A pure function of the view and its arguments. Batches past
  /// batches() exist for padded ranks only (remainder "pad"). Throws no_memory for a plan that
  /// takes more than the limit.
  virtual BatchPlan plan(std::int64_t epoch, std::int64_t batch, PlanLimit limit) const;
  BatchPlan plan(std::int64_t epoch, std::int64_t batch) const {
    return plan(epoch, batch, PlanLimit{});
  }

  /// The plan of these samples alone, in these rows of a batch, each sample in one; without shapes.
  BatchPlan plan_samples(const std::vector<std::int64_t>& samples,
                         const std::vector<std::int64_t>& places, PlanLimit limit) const;
  /// The sample at a position of an epoch, 0 <= position < epoch_samples(). Precondition: a view of
  /// windows, and !needs_scan().
  virtual std::int64_t sample_at(std::int64_t position, std::int64_t epoch) const;

  /// Samples of a batch: one for each row, unless a sample is made of all rows (xbatcher).
  virtual std::int64_t sample_count(std::int64_t batch) const { return row_count(batch); }
  /// The numbers of some of a batch's samples in row order; cheap.
  virtual std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                               RowRange range) const = 0;
  std::vector<std::int64_t> batch_samples(std::int64_t epoch, std::int64_t batch) const {
    return samples_in(epoch, batch, {0, sample_count(batch)});
  }
  /// The sample numbers, followed by where each sample's window begins, sample by sample: a
  /// position of the selection per window dimension. Equally cheap.
  std::vector<std::int64_t> batch_windows(std::int64_t epoch, std::int64_t batch) const;
  const std::vector<WindowDim>& window_dims() const { return window_dims_; }

  /// The attributes of a tensor: those that all its variables share. For normalized values the
  /// units are called "original_units".
  Json attributes_of(std::uint32_t tensor) const;

  /// schema.json, view.json (every default filled in).
  virtual Json schema() const;
  virtual Json resolved() const;

  /// The lists of batch-….json, see ProvenanceText, and the chunks at its end. They refer to this
  /// view.
  virtual std::vector<ProvenanceList> provenance_lists(std::int64_t epoch,
                                                       std::int64_t batch) const;
  virtual std::vector<ChunkWalk> chunk_walks(std::int64_t epoch, std::int64_t batch) const;
  /// A chunk as batch-….json names it.
  virtual std::string chunk_label(std::uint32_t variable, std::int64_t chunk) const;

  /// Coordinates after selection, for coords/ and schema.json: name, dims, values.
  struct Coordinate {
    std::string name;
    std::vector<std::string> dims;
    std::shared_ptr<const NdArray> values;  // lives no longer than the view
    std::string note;                       // as CfDecoding's
    Json attributes = Json::object();       // see decoded_attributes()
  };
  const std::vector<Coordinate>& coordinates() const { return coordinates_; }
  /// Bytes of the lists of its samples that the view keeps in memory, without those of components.
  virtual std::uint64_t held_memory() const { return 0; }
  /// Coordinates of the tensors of one batch, for the zarr format: along "sample" and the tensor
  /// dims. They refer to this view.
  virtual std::vector<BatchCoordinate> batch_coordinates(std::int64_t epoch,
                                                         std::int64_t batch) const = 0;

 protected:
  View(std::shared_ptr<const Dataset> dataset, ViewSpec spec);

  /// Some of a batch's rows.
  virtual std::vector<Row> rows(std::int64_t epoch, std::int64_t batch, RowRange range) const = 0;
  /// The placements that the plan of a batch has.
  virtual PlanPlacements placements_of(std::int64_t batch) const;
  /// Writes where the window of a sample begins, a position per window dimension.
  virtual void starts_of(std::int64_t sample, std::int64_t* starts) const = 0;

  /// The windows of these samples, in these rows of a batch.
  std::vector<Row> rows_at(std::span<const std::int64_t> samples,
                           std::span<const std::int64_t> places) const;
  /// Adds what a plan takes for some of its rows; `samples` are theirs.
  void add_rows(BatchPlan& plan, PlanBuilder& builder, const std::vector<Row>& rows,
                std::span<const std::int64_t> samples) const;
  /// Throws no_memory for lists of a plan that take more than the limit.
  static void check_limit(const BatchPlan& plan, const PlanBuilder& builder);
  /// Adds the values that are given with these samples, each to its row.
  void add_given(BatchPlan& plan, const std::vector<Row>& rows,
                 std::span<const std::int64_t> samples) const;
  /// Array indices of a window, first and behind the last, along each window dimension.
  void write_window(const Dims& starts, JsonWriter& out) const;
  ProvenanceList samples_list(std::int64_t epoch, std::int64_t batch) const;
  ProvenanceList windows_list(std::int64_t epoch, std::int64_t batch) const;
  ProvenanceList starts_list(std::int64_t epoch, std::int64_t batch) const;
  /// Throws when files of the view's formats cannot have this name in them.
  void check_tensor_name(const std::string& name, const std::string& path) const;
  /// Throws not_found with `path` and the nearest name.
  const Variable& find_variable(const std::string& name, const std::string& path) const;
  /// The number of a variable that can be read, entering it in variables_; for a concatenated one
  /// that of its first part, which the others follow. Throws with `path`.
  std::uint32_t use_variable(const std::string& name, const std::string& path);
  /// Throws not_supported where the variable repeats a dimension of the windows and the view does
  /// not state whether windows slide along the repetition: xarray selects along both.
  void check_repeated_dims(const Variable& variable, const std::string& path) const;
  /// Throws where a source lacks labels along a dimension that is not a window's, which would leave
  /// no value there.
  void check_joined(const Variable& variable, std::size_t d, const Positions& stored) const;
  /// The type of a variable in a tensor: as decoded, float64 for normalised integers; floats cast
  /// to the view's dtype.
  DataType result_type(const Variable& variable) const;
  void add_converter(std::uint32_t tensor, std::uint32_t variable, const DataType& type);
  /// The operations on a variable's values before their cast to `type`.
  Finish finish_of(std::uint32_t variable, const DataType& type);
  void add_converter(std::uint32_t tensor, const TensorSource::Channels& channels,
                     const DataType& type);
  /// When all tensors are known: finds the made channels that are made of variables. Returns the
  /// bytes of a sample's operands of each combination.
  std::vector<std::int64_t> add_combinations();
  /// `padding` takes the padding of the operands, for their channel in its tensor.
  void add_combination(const MadeChannel& channel, const VariablePlacement& placement,
                       std::shared_ptr<const Converter> converter, ChannelPadding& padding);
  /// A variable or channel of a coarsened tensor.
  void add_coarsening(const VariablePlacement& placement);
  /// Adds a variable that a channel is computed of, each of its parts where its source has it.
  /// Throws not_supported with `path`.
  void add_operands(const std::string& path, const Variable& variable,
                    const VariablePlacement& operand, ChannelPadding& padding);
  /// Are the tensor's offsets along the dimension lengths of time?
  bool has_durations(std::uint32_t tensor, const std::string& dim) const;
  void keep_padding(ChannelPadding padding);
  /// The samples of the combinations of a row.
  void add_combined(BatchPlan& plan, const Row& row) const;
  /// The variables and made channels of a tensor, in its order, entering them.
  std::vector<TensorSource::Channels> use_channels(const TensorDefinition& tensor);
  /// The type that all of them have in the tensor. Throws with its path unless it is one.
  DataType type_of(const TensorDefinition& tensor,
                   const std::vector<TensorSource::Channels>& channels) const;
  /// Data variables that have every one of `dims`. Throws when there are none.
  std::vector<std::string> default_variables(const std::vector<std::string>& dims) const;
  /// The value of elements of a tensor that lie outside the selection: the view's pad_value; else
  /// NaN, NaT, false or 0. Throws when the type cannot hold it.
  std::array<std::byte, 16> pad_element(const DataType& type, const std::string& path) const;
  /// Throws unless "normalize" names variables of this view only.
  void check_normalized_names() const;
  void collect_coordinates();
  /// "imerg:" for a variable of a source but the first, for one of several concatenated stores the
  /// store's name; else empty.
  std::string source_prefix(const Variable& variable) const;
  /// The variable that use_variable() returned the number for, with all its parts.
  const Variable& whole_variable(std::uint32_t number) const;
  Json variable_json(const VariablePlacement& placement, const TensorSpec& tensor) const;
  /// Index values along a dimension after selection; an empty type when it has no coordinate.
  const Coordinate* index_coordinate(const std::string& dim) const;

  std::shared_ptr<const Dataset> dataset_;
  ViewSpec spec_;
  std::map<std::string, Positions> selected_;
  mutable JoinedAxes joined_{selected_};
  std::vector<std::vector<Positions>> stored_;  // per variable and dimension of its array
  std::vector<WindowDim> window_dims_;
  std::vector<TensorSpec> tensors_;
  /// Bytes of a sample in each tensor, followed by those of its operands in each combination.
  std::vector<std::int64_t> sample_bytes_;
  std::vector<const Variable*> variables_;
  std::vector<std::unique_ptr<Variable>> settled_;  // times, as settled_decoding() has them; parts
  std::map<std::uint32_t, std::unique_ptr<const Variable>> whole_;  // that have parts, by number
  Converters converters_;
  std::map<std::uint32_t, std::shared_ptr<const Normalization>> normalizations_;  // by variable
  std::vector<VariablePlacement> placements_;
  MadeChannels made_;
  std::vector<VariablePlacement> made_placements_;       // of made channels
  std::vector<VariablePlacement> coarsened_placements_;  // of all channels of coarsened tensors
  Combinations combinations_;
  std::vector<ChannelPadding> channel_paddings_;
  std::vector<VariablePlacement> more_placements_;  // that plans have beside placements_
  std::vector<VariablePlacement> scanned_;  // of all stored variables, in the tensors they are for
  std::vector<Coordinate> coordinates_;
};

/// Can the variable be read, and is it of a type that batches can have?
bool fits_tensor(const Variable& variable);

}  // namespace batchfs
