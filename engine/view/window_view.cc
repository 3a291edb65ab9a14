// Views by windows: samples are the positions of a window that slides over the selection.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/view/allowed_windows.h"
#include "engine/view/batch_coordinates.h"
#include "engine/view/held_lists.h"
#include "engine/view/list/list_groups.h"
#include "engine/view/list/listed_samples.h"
#include "engine/view/list/restricted_list.h"
#include "engine/view/list/weighted_order.h"
#include "engine/view/order/chunk_groups.h"
#include "engine/view/order/epoch_order.h"
#include "engine/view/reached_numbers.h"
#include "engine/view/samples/missing.h"
#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/time_windows.h"
#include "engine/view/tensor_definitions.h"
#include "engine/view/tensor_layout.h"
#include "engine/view/view_kinds.h"
#include "engine/view/view_limits.h"
#include "engine/view/window_checks.h"
#include "engine/view/window_grid.h"

namespace batchfs {

namespace {

class WindowView final : public View {
 public:
  WindowView(std::shared_ptr<const Dataset> dataset, ViewSpec spec)
      : View(std::move(dataset), std::move(spec)) {
    TimeStepsByDim times(*dataset_, selected_);
    for (WindowSpec& window : spec_.window) {
      try {
        dataset_->dim_size(window.dim);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("window.{}: {}", window.dim, error.why()));
      }
      if (selected(window.dim).drops_dim())
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("window.{}: \"select\" takes one position of it, which drops the dimension",
                        window.dim));
      if (window.wrap) check_circle(*dataset_, window.dim, selected(window.dim));
      resolve_durations(window, spec_.samples, times);
      window_dims_.push_back(
          {window.dim, window.size, window.wrap, window.edge != WindowSpec::Edge::drop});
      sizes_.push_back(window.size);
      has_partial_ = has_partial_ || window.edge == WindowSpec::Edge::partial;
    }
    define_tensors(times);
    count_positions(times);
    for (std::uint32_t t = 0; t < definitions_.size(); ++t) add_tensor(t);
    if (list_ != nullptr) add_labels();
    for (const std::int64_t bytes : add_combinations()) sample_bytes_.push_back(bytes);
    check_zarr_names(spec_.formats, tensors_);
    checked_ = checked_placements(spec_.skip, tensors_, variables_, scanned_);
    define_groups();
    define_order();
    check_normalized_names();
    if (spec_.normalize) {
      std::vector<std::uint32_t> normalized;
      for (const auto& [variable, numbers] : normalizations_) normalized.push_back(variable);
      check_numbers(*this, *spec_.normalize, normalized);
    }
    collect_coordinates();
  }

  std::uint64_t held_memory() const override {
    return held_bytes({spec_, selected_, grid_, groups_, index_.get(), allowed_.get(), list_.get(),
                       by_.get(), samples_, epoch_samples()});
  }

  std::int64_t samples() const override { return samples_; }
  std::int64_t batch_size() const override { return spec_.batch_size; }

  std::int64_t batches() const override {
    return spec_.remainder == ViewSpec::Remainder::drop
               ? epoch_samples() / spec_.batch_size
               : (epoch_samples() + spec_.batch_size - 1) / spec_.batch_size;
  }

  std::int64_t epoch_samples() const override { return spec_.epoch_samples.value_or(samples_); }

  std::vector<Dims> shapes(std::int64_t batch) const override {
    std::vector<Dims> result;
    const Dims sizes = sizes_of(batch);
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      const bool full = sizes == sizes_ || tensors_[t].values != nullptr;
      result.push_back(full ? tensors_[t].shape : lay_out(source(t), sizes).spec.shape);
      result.back()[0] = row_count(batch);
    }
    return result;
  }

  using View::plan;
  BatchPlan plan(std::int64_t epoch, std::int64_t batch, PlanLimit limit) const override {
    const Dims sizes = sizes_of(batch);
    if (sizes == sizes_) return View::plan(epoch, batch, limit);
    BatchPlan plan;  // of partial windows: its tensors are smaller
    plan.samples = batch_samples(epoch, batch);
    plan.shapes = shapes(batch);
    const std::vector<TensorLayout> layouts = layouts_of(sizes);
    PlanBuilder builder(variables_, limit, plan.samples.size());
    for_each_range(row_count(batch), [&](RowRange range) {
      const std::vector<Row> full = rows(epoch, batch, range);
      std::int64_t r = range.first;
      for (Row row : full) {
        for (std::size_t t = 0; t < layouts.size(); ++t)
          row.offsets[t] = r * layouts[t].sample_bytes;
        for (const TensorLayout& layout : layouts)
          for (const VariablePlacement& placement : layout.placements) builder.add(placement, row);
        ++r;
      }
      add_given(plan, full, in_range(plan.samples, range));
      check_limit(plan, builder);
    });
    builder.finish(plan);
    return plan;
  }

  bool needs_scan() const override {
    return spec_.missing == ViewSpec::Missing::skip && !samples_known_;
  }

  ViewScan scan() const override {
    return {.windows = list_ != nullptr ? count_windows(grid_) : windows_,
            .grid = grid_,
            .chosen = allowed_,
            .list = list_,
            .draws = spec_.weights ? spec_.weights->draws : nullptr,
            .placements = &scanned_,
            .checked = spec_.skip.names.empty() ? nullptr : &checked_,
            .made = &made_placements_,
            .coarsened = &coarsened_placements_,
            .at_most = spec_.skip.at_most};
  }

  std::shared_ptr<const View> with_samples(
      std::shared_ptr<const SampleIndex> index) const override {
    return with(spec_, true, std::move(index));
  }

  std::int64_t windows() const override { return all_windows_; }

  Dropped dropped() const override {
    Dropped all = dropped_;
    if (list_ == nullptr && index_ != allowed_) all.emplace_back("missing", allowed() - samples_);
    return all;
  }

  std::vector<std::string> warnings() const override {
    TimeStepsByDim times(*dataset_, selected_);
    std::vector<std::string> lines =
        list_ != nullptr ? list_warnings(spec_) : gap_warnings(restricted_view(times), grid_);
    lines.insert(lines.end(), part_warnings_.begin(), part_warnings_.end());
    return lines;
  }

  void visit_windows(const UseWindows& use) const override {
    TimeStepsByDim times(*dataset_, selected_);
    use(restricted_view(times), scan());
  }

  const Order* order() const override { return &spec_.order; }

  std::shared_ptr<const View> with_order(const Order& order) const override {
    ViewSpec spec = spec_;
    spec.order = order;
    return with(std::move(spec), samples_known_, index_ == allowed_ ? nullptr : index_);
  }

  std::int64_t mixed_samples() const override {
    switch (spec_.order.shuffle) {
      case Order::Shuffle::none:
        return 1;
      case Order::Shuffle::global:
        return samples_;
      case Order::Shuffle::block:
        break;
    }
    const std::int64_t groups =
        spec_.order.home ? groups_.count() / spec_.order.lanes : groups_.count();
    const std::int64_t runs = std::min(spec_.order.buffer, groups);
    if (!index_ && !groups_.is_uneven())
      return std::max<std::int64_t>(1, runs * groups_.group_samples());
    // For skipped windows, as many in a run as elsewhere; for groups, those of mean size.
    const double kept = static_cast<double>(samples_) / static_cast<double>(windows_);
    const double size =
        static_cast<double>(groups_.in_groups()) / static_cast<double>(groups_.count());
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(runs) * size * kept));
  }

  std::int64_t row_count(std::int64_t batch) const override {
    if (spec_.remainder == ViewSpec::Remainder::pad) return spec_.batch_size;
    return std::max<std::int64_t>(
        0, std::min(spec_.batch_size, epoch_samples() - batch * spec_.batch_size));
  }

  std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const override {
    if (needs_scan())
      throw Error(ErrorCode::internal, "the samples of this view are not known yet");
    std::vector<std::int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(range.count));
    for (std::int64_t i = range.first; i < range.end(); ++i)
      numbers.push_back(sample_at((batch * spec_.batch_size + i) % epoch_samples(), epoch));
    return numbers;
  }

  std::int64_t sample_at(std::int64_t i, std::int64_t epoch) const override {
    if (draws_ != nullptr) return draws_->sample(i, epoch);
    const std::int64_t found = order_->sample(i, epoch);
    return places_.empty() ? found : places_[static_cast<std::size_t>(found)];
  }

  std::vector<BatchCoordinate> batch_coordinates(std::int64_t epoch,
                                                 std::int64_t batch) const override {
    return coordinates_of_batch(*this, epoch, batch);
  }

 protected:
  std::vector<Row> rows(std::int64_t epoch, std::int64_t batch, RowRange range) const override {
    const std::vector<std::int64_t> numbers = samples_in(epoch, batch, range);
    std::vector<std::int64_t> places(numbers.size());
    std::iota(places.begin(), places.end(), range.first);
    return rows_at(numbers, places);
  }

  PlanPlacements placements_of(std::int64_t batch) const override {
    const Dims sizes = sizes_of(batch);
    if (sizes == sizes_) return View::placements_of(batch);
    PlanPlacements result;
    for (TensorLayout& layout : layouts_of(sizes))
      for (VariablePlacement& placement : layout.placements)
        result.own.push_back(std::move(placement));
    for (const VariablePlacement& placement : result.own) result.all.push_back(&placement);
    return result;
  }

  void starts_of(std::int64_t sample, std::int64_t* starts) const override {
    if (list_ != nullptr) return list_->starts(sample, starts);
    std::int64_t number = index_ != nullptr ? index_->window(sample) : sample;
    for (std::size_t w = grid_.counts.size(); w-- > 0;) {
      starts[w] = grid_.start(w, number % grid_.counts[w]);
      number /= grid_.counts[w];
    }
  }

 private:
  /// The same dataset, another specification of it.
  std::shared_ptr<const View> with(ViewSpec spec, bool samples_known,
                                   std::shared_ptr<const SampleIndex> index) const {
    if (index && index->windows() != scan().windows)
      throw Error(ErrorCode::internal, "the samples are those of another view");
    if (index && list_) drop_missing_rows(spec, std::exchange(index, nullptr));
    auto view = std::make_shared<WindowView>(dataset_, std::move(spec));
    view->samples_known_ = samples_known;
    if (!index) return view;
    view->index_ = in_both(view->allowed_, index);
    view->samples_ = view->index_->samples();
    if (view->samples_ == 0) throw nothing_left(spec_.skip, allowed());
    view->check_batches();
    view->define_order();
    return view;
  }

  /// Windows that restrictions leave, with or without missing values.
  std::int64_t allowed() const { return allowed_ != nullptr ? allowed_->samples() : windows_; }

  void define_groups() {
    by_ = source_chunks(spec_, *dataset_, variables_, selected_, joined_);
    const WindowedVariables view = windowed_variables();
    if (list_ == nullptr) {
      groups_ = chunk_groups(view, spec_.span);
    } else if (spec_.order.shuffle == Order::Shuffle::block && !spec_.weights) {
      constexpr std::uint64_t kSorted = 3 * sizeof(std::uint32_t);  // a row's, in place and sorted
      check_list(*dataset_, static_cast<std::uint64_t>(samples_) * kSorted, "order.shuffle",
                 "the places of the list's rows");
      SequenceGroups rows = group_sequence(
          GroupNumbers(view, spec_.span), samples_, window_dims_.size(),
          [this](std::int64_t row, std::int64_t* starts) { list_->starts(row, starts); });
      groups_ = std::move(rows.groups);
      places_ = std::move(rows.places);
    } else {
      groups_.axes.push_back({samples_, 0, samples_});
    }
    if (spec_.order.buffer == 0)
      spec_.order.buffer =
          list_ != nullptr ? default_list_mixing(view, spec_.span) : default_mixing(view, groups_);
  }

  void define_order() {
    if (spec_.weights) return define_draws();
    order_ = std::make_unique<EpochOrder>(
        spec_.order, groups_, EpochOrder::Sizes{samples_, epoch_samples(), spec_.batch_size},
        index_);
  }

  void define_draws() {
    auto draws = sample_draws(
        spec_, listing_view(), list_.get(), samples_,
        [this](std::int64_t sample, std::int64_t* starts) { starts_of(sample, starts); });
    draws_ = std::make_unique<WeightedOrder>(
        spec_.order, EpochOrder::Sizes{samples_, epoch_samples(), spec_.batch_size},
        std::move(draws), [this](std::int64_t count, const auto& sample) {
          GroupNumbers numbers(windowed_variables(), spec_.span);
          if (spec_.order.home) numbers.deal(spec_.order.seed);
          return group_sequence(
              numbers, count, window_dims_.size(),
              [&](std::int64_t i, std::int64_t* starts) { starts_of(sample(i), starts); });
        });
  }

  void define_tensors(TimeStepsByDim& times) {
    definitions_ = spec_.tensors;
    if (definitions_.empty()) {
      std::vector<std::string> dims;
      for (const WindowDim& w : window_dims_) dims.push_back(w.name);
      definitions_ = definitions_of(spec_.variables ? *spec_.variables : default_variables(dims));
    } else if (spec_.variables) {
      // The tensors name the variables used; an unknown name here is still an error.
      for (std::size_t i = 0; i < spec_.variables->size(); ++i)
        find_variable((*spec_.variables)[i], fmt::format("variables[{}]", i));
    }
    for (TensorDefinition& tensor : definitions_) {
      check_tensor_name(tensor.name, tensor.path);
      resolve_tensor_offsets(tensor, window_dims_, *dataset_, spec_.split, times);
    }
  }

  void count_positions(TimeStepsByDim& times) {
    reaches_ =
        resolve_reaches(definitions_, spec_.reserve, window_dims_, *dataset_, times, joined_);
    if (spec_.list) return take_list(times);
    grid_ = window_grid(spec_.window, reserved_ranges(), *dataset_, selected_, times);
    all_windows_ = count_windows(grid_);
    dropped_ = restrict_windows(restricted_view(times), grid_);
    AllowedWindows left = keep_allowed(spec_, restricted_view(times), grid_);
    dropped_.insert(dropped_.end(), left.dropped.begin(), left.dropped.end());
    part_warnings_ = std::move(left.warnings);
    index_ = allowed_ = std::move(left.index);
    windows_ = count_windows(grid_);
    samples_ = allowed();
    check_batches();
  }

  void take_list(TimeStepsByDim& times) {
    const auto left =
        restrict_list(spec_, restricted_view(times), listed_samples(spec_, listing_view()));
    list_ = left->list;
    grid_ = left->grid;
    allowed_ = left->allowed;
    dropped_ = left->dropped;
    part_warnings_ = left->warnings;
    all_windows_ = windows_ = samples_ = list_->rows();
    for (const auto& [restriction, rows] : dropped_) all_windows_ += rows;
    check_batches();
  }

  ListingView listing_view() const {
    return {*dataset_, selected_, window_dims_, reaches_, reserved_ranges()};
  }

  RestrictedView restricted_view(TimeStepsByDim& times) const {
    return {*dataset_, spec_.samples, selected_, window_dims_, reaches_, times};
  }

  void check_batches() const {
    if (batches() == 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "batch.remainder: \"drop\" leaves no batch: there are {} samples, a batch has {}",
              epoch_samples(), spec_.batch_size));
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> reserved_ranges() const {
    return batchfs::reserved_ranges(definitions_, spec_.reserve, window_dims_);
  }

  /// How long the windows of a batch are: the view's sizes, but less where every one of them is
  /// partial.
  Dims sizes_of(std::int64_t batch) const {
    if (!has_partial_ || row_count(batch) == 0) return sizes_;
    Dims sizes = sizes_;
    for (std::size_t w = 0; w < sizes_.size(); ++w)
      if (spec_.window[w].edge == WindowSpec::Edge::partial) sizes[w] = 1;
    // Without a shuffle, so that epochs do not differ.
    for_each_range(row_count(batch), [&](RowRange range) {
      for (const Row& row : rows(0, batch, range)) cover(row, sizes);
    });
    return sizes;
  }

  std::vector<TensorLayout> layouts_of(const Dims& sizes) const {
    std::vector<TensorLayout> layouts;
    for (std::uint32_t t = 0; t < definitions_.size(); ++t)
      layouts.push_back(lay_out(source(t), sizes));
    return layouts;
  }

  /// Makes the sizes as long as what a row's windows have inside the selection.
  void cover(const Row& row, Dims& sizes) const {
    for (std::size_t w = 0; w < sizes_.size(); ++w) {
      std::int64_t first = row.starts[w] + offset_range(definitions_, window_dims_[w].name).first;
      for (const Reach::Labelled& each : reaches_[w].labelled)
        for (std::size_t o = 0; o < each.labels->size(); ++o)
          if (each.restriction == "offsets")
            first = std::min(first, each.labels->first(o, row.starts[w]));
      const std::int64_t inside = selected(window_dims_[w].name).size() - first;
      sizes[w] = std::max(sizes[w], std::min(sizes_[w], inside));
    }
  }

  void add_tensor(std::uint32_t t) {
    const TensorDefinition& tensor = definitions_[t];
    channels_.push_back(use_channels(tensor));
    TensorLayout layout = lay_out(source(t), sizes_);
    layout.spec.padded = may_pad(window_dims_, layout.placements);
    if (layout.spec.padded) layout.spec.pad = pad_element(layout.spec.type, tensor.path);
    layout.spec.channels = channel_names(source(t), layout, sizes_, *dataset_);
    for (const auto& each : channels_.back())
      if (tensor.coarsen.empty() || each.made) add_converter(t, each, layout.spec.type);
    for (VariablePlacement& placement : layout.placements)
      (placement.made ? made_placements_ : placements_).push_back(std::move(placement));
    coarsened_placements_.insert(coarsened_placements_.end(), layout.coarsened.begin(),
                                 layout.coarsened.end());
    sample_bytes_.push_back(layout.sample_bytes);
    tensors_.push_back(std::move(layout.spec));
  }

  void add_labels() {
    for (TensorSpec& tensor : label_tensors(spec_, *list_)) {
      for (const auto& [name, path] : spec_.list->labels)
        if (name == tensor.name) check_tensor_name(name, path);
      for (const TensorSpec& other : tensors_)
        if (other.name == tensor.name)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("samples.labels: there is a tensor '{}' already; give the column "
                                  "another name",
                                  tensor.name));
      sample_bytes_.push_back(tensor.type.itemsize);
      tensors_.push_back(std::move(tensor));
    }
  }

  /// The inputs of a tensor's layout. Throws unless its variables are of one type.
  TensorSource source(std::uint32_t t) const {
    const TensorDefinition& tensor = definitions_[t];
    return {t,
            tensor,
            type_of(tensor, channels_[t]),
            channels_[t],
            selected_,
            window_dims_,
            spec_.batch_size,
            joined_,
            made_.field_dims()};
  }

  WindowedVariables windowed_variables() const {
    return {variables_, selected_, window_dims_, grid_, by_.get()};
  }

  std::vector<TensorDefinition> definitions_;
  WindowGrid grid_;                                            // of the windows' starts
  std::vector<Reach> reaches_;                                 // per window dimension
  std::vector<std::vector<TensorSource::Channels>> channels_;  // of each tensor
  Dims sizes_;                                                 // of the windows
  bool has_partial_ = false;
  std::int64_t samples_ = 1;
  std::int64_t windows_ = 1, all_windows_ = 1;  // of the grid; before restrictions
  Dropped dropped_;                             // by restrictions of the grid
  std::vector<std::string> part_warnings_;
  bool samples_known_ = false;
  std::shared_ptr<const SampleIndex> index_;  // null: every window is a sample
  /// The windows that joint restrictions allow; null: every window.
  std::shared_ptr<const SampleIndex> allowed_;
  std::vector<VariablePlacement> checked_;  // whose missing values count, where not all do
  std::shared_ptr<const SourceChunks> by_;  // null: groups are of the first source's chunks
  ChunkGroups groups_;
  std::unique_ptr<const EpochOrder> order_;     // null with weights
  std::shared_ptr<const SampleList> list_;      // null: the windows of the grid
  std::vector<std::uint32_t> places_;           // of a list in the block order: rows by chunk
  std::unique_ptr<const WeightedOrder> draws_;  // null without weights
};

}  // namespace

std::shared_ptr<const View> make_window_view(std::shared_ptr<const Dataset> dataset,
                                             ViewSpec spec) {
  return std::make_shared<WindowView>(std::move(dataset), std::move(spec));
}

}  // namespace batchfs
