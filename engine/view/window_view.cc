// Views by windows: samples are the positions of a window that slides over the selection.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/dataset/circle.h"
#include "engine/dataset/labels.h"
#include "engine/view/order/chunk_groups.h"
#include "engine/view/order/epoch_order.h"
#include "engine/view/samples/missing.h"
#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/time_windows.h"
#include "engine/view/tensor_layout.h"
#include "engine/view/view_kinds.h"

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
      if (window.wrap) check_circle(window.dim);
      resolve_durations(window, spec_.samples, times);
      window_dims_.push_back(
          {window.dim, window.size, window.wrap, window.edge != WindowSpec::Edge::drop});
      sizes_.push_back(window.size);
      has_partial_ = has_partial_ || window.edge == WindowSpec::Edge::partial;
    }
    define_tensors(times);
    count_positions(times);
    for (std::uint32_t t = 0; t < definitions_.size(); ++t) add_tensor(t);
    check_zarr_names();
    groups_ = chunk_groups(windowed_variables(), spec_.span);
    if (spec_.order.buffer == 0) spec_.order.buffer = default_mixing(windowed_variables(), groups_);
    define_order();
    check_normalized_names();
    collect_coordinates();
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
      result.push_back(sizes == sizes_ ? tensors_[t].shape : lay_out(source(t), sizes).spec.shape);
      result.back()[0] = rows_of(batch);
    }
    return result;
  }

  BatchPlan plan(std::int64_t epoch, std::int64_t batch) const override {
    const Dims sizes = sizes_of(batch);
    if (sizes == sizes_) return View::plan(epoch, batch);
    // A batch of partial windows: its tensors are smaller.
    BatchPlan plan;
    plan.samples = batch_samples(epoch, batch);
    plan.shapes = shapes(batch);
    std::vector<TensorLayout> layouts;
    for (std::uint32_t t = 0; t < tensors_.size(); ++t)
      layouts.push_back(lay_out(source(t), sizes));
    PlanBuilder builder(variables_);
    std::int64_t r = 0;
    for (Row row : rows(epoch, batch)) {
      for (std::size_t t = 0; t < layouts.size(); ++t) row.offsets[t] = r * layouts[t].sample_bytes;
      for (const TensorLayout& layout : layouts)
        for (const VariablePlacement& placement : layout.placements) builder.add(placement, row);
      ++r;
    }
    builder.finish(plan);
    return plan;
  }

  bool needs_scan() const override {
    return spec_.missing == ViewSpec::Missing::skip && !samples_known_;
  }

  ViewScan scan() const override {
    ViewScan result;
    result.windows = windows_;
    result.grid = grid_;
    result.placements = &placements_;
    return result;
  }

  std::shared_ptr<const View> with_samples(
      std::shared_ptr<const SampleIndex> index) const override {
    return with(spec_, true, std::move(index));
  }

  std::int64_t windows() const override { return all_windows_; }

  Dropped dropped() const override {
    Dropped all = dropped_;
    if (index_ != nullptr) all.emplace_back("missing", windows_ - samples_);
    return all;
  }

  std::vector<std::string> warnings() const override {
    TimeStepsByDim times(*dataset_, selected_);
    return gap_warnings(restricted_view(times), grid_);
  }

  const Order* order() const override { return &spec_.order; }

  std::shared_ptr<const View> with_order(const Order& order) const override {
    ViewSpec spec = spec_;
    spec.order = order;
    return with(std::move(spec), samples_known_, index_);
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
    // Of windows that are skipped, as many in a run as elsewhere; of groups, those of mean size.
    const double kept = static_cast<double>(samples_) / static_cast<double>(windows_);
    const double size =
        static_cast<double>(groups_.in_groups()) / static_cast<double>(groups_.count());
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(runs) * size * kept));
  }

  std::vector<std::int64_t> batch_samples(std::int64_t epoch, std::int64_t batch) const override {
    if (needs_scan())
      throw Error(ErrorCode::internal, "the samples of this view are not known yet");
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < rows_of(batch); ++i)
      numbers.push_back(order_->sample((batch * spec_.batch_size + i) % epoch_samples(), epoch));
    return numbers;
  }

  std::vector<Coordinate> batch_coordinates(std::int64_t epoch, std::int64_t batch) const override {
    std::vector<Coordinate> result;
    auto taken = [&](const std::string& name) {
      return std::any_of(tensors_.begin(), tensors_.end(),
                         [&](const TensorSpec& t) { return t.name == name; }) ||
             std::any_of(result.begin(), result.end(),
                         [&](const Coordinate& c) { return c.name == name; });
    };
    for (std::size_t w = 0; w < window_dims_.size(); ++w) {
      const Coordinate* index = index_coordinate(window_dims_[w].name);
      // Along the samples: the label of each window's first position, or the position itself.
      const std::string name =
          window_dims_[w].size == 1 && !is_tensor_dim(tensor_dim(window_dims_[w].name))
              ? window_dims_[w].name
              : window_dims_[w].name + "_start";
      if (taken(name) || is_tensor_dim(name)) continue;
      const std::vector<Row> all = rows(epoch, batch);
      const DataType type = index != nullptr ? index->values.type : make_type(Kind::signed_int, 8);
      const std::size_t itemsize = type.itemsize;
      NdArray values{type, {static_cast<std::int64_t>(all.size())}, Buffer(all.size() * itemsize)};
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::int64_t start = all[i].starts[w];
        const std::int64_t position = selected(window_dims_[w].name)[start];
        const auto* label = index != nullptr ? index->values.data.data() +
                                                   static_cast<std::size_t>(start) * itemsize
                                             : reinterpret_cast<const std::byte*>(&position);
        std::memcpy(values.data.data() + i * itemsize, label, itemsize);
      }
      result.push_back({name,
                        {"sample"},
                        std::move(values),
                        index != nullptr ? index->note : "",
                        index != nullptr ? index->attributes : Json::object()});
    }
    for (const Coordinate& coordinate : coordinates_) {
      const bool is_window =
          std::any_of(window_dims_.begin(), window_dims_.end(),
                      [&](const WindowDim& w) { return w.name == coordinate.name; });
      const std::string name = tensor_dim(coordinate.name);
      if (is_window || taken(name) || !is_tensor_dim(name)) continue;
      Buffer copy(coordinate.values.data.size());
      if (copy.size() > 0) std::memcpy(copy.data(), coordinate.values.data.data(), copy.size());
      result.push_back({name,
                        {name},
                        NdArray{coordinate.values.type, coordinate.values.shape, std::move(copy)},
                        coordinate.note,
                        coordinate.attributes});
    }
    return result;
  }

 protected:
  std::vector<Row> rows(std::int64_t epoch, std::int64_t batch) const override {
    std::vector<Row> result;
    std::int64_t r = 0;
    for (const std::int64_t number : batch_samples(epoch, batch)) {
      Row row;
      row.starts.resize(grid_.counts.size());
      starts_of(number, row.starts.begin());
      for (std::int64_t bytes : sample_bytes_) row.offsets.push_back(r * bytes);
      result.push_back(std::move(row));
      ++r;
    }
    return result;
  }

  void starts_of(std::int64_t sample, std::int64_t* starts) const override {
    std::int64_t number = index_ != nullptr ? index_->window(sample) : sample;
    for (std::size_t w = grid_.counts.size(); w-- > 0;) {
      starts[w] = grid_.start(w, number % grid_.counts[w]);
      number /= grid_.counts[w];
    }
  }

 private:
  /// Throws where windows that wrap would join the two edges of a region.
  void check_circle(const std::string& dim) const {
    const Variable* index = dataset_->index_of(dim);
    const Positions& positions = selected(dim);
    if (index == nullptr || positions.size() == 0) return;
    const NdArray& values = dataset_->index_values(dim);
    const auto period = period_of(*index, values);
    if (!period || covers_circle(values, *period, positions)) return;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "window.{0}.wrap: the values of '{0}', {1} to {2}, are a part of the circle, so "
            "that a window over their end would join two places that are not neighbours; "
            "leave \"wrap\" out",
            dim, label_text(values, positions[0]),
            label_text(values, positions[positions.size() - 1])));
  }

  /// The same dataset, another specification of it.
  std::shared_ptr<const View> with(ViewSpec spec, bool samples_known,
                                   std::shared_ptr<const SampleIndex> index) const {
    auto view = std::make_shared<WindowView>(dataset_, std::move(spec));
    view->samples_known_ = samples_known;
    if (index == nullptr) return view;
    if (index->windows() != windows_)
      throw Error(ErrorCode::internal, "the samples are those of another view");
    view->samples_ = index->samples();
    if (view->samples_ == 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("missing: \"skip\" leaves no sample: each of the {} windows holds a NaN",
                      windows_));
    view->check_batches();
    view->index_ = std::move(index);
    view->define_order();
    return view;
  }

  std::int64_t rows_of(std::int64_t batch) const {
    if (spec_.remainder == ViewSpec::Remainder::pad) return spec_.batch_size;
    return std::max<std::int64_t>(
        0, std::min(spec_.batch_size, epoch_samples() - batch * spec_.batch_size));
  }

  void define_order() {
    order_ = std::make_unique<EpochOrder>(
        spec_.order, groups_, EpochOrder::Sizes{samples_, epoch_samples(), spec_.batch_size},
        index_);
  }

  /// `dim` as tensors call it.
  bool is_tensor_dim(const std::string& dim) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const TensorSpec& t) {
      return std::find(t.dims.begin() + 1, t.dims.end(), dim) != t.dims.end();
    });
  }

  /// In a Zarr batch an array that is named as a dimension is the dimension's coordinate.
  void check_zarr_names() const {
    if (std::find(spec_.formats.begin(), spec_.formats.end(), "zarr") == spec_.formats.end())
      return;
    for (const TensorSpec& tensor : tensors_)
      if (tensor.name == "sample" || is_tensor_dim(tensor.name))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("tensors: '{}' is also the name of a dimension, which the format "
                                "\"zarr\" cannot have; give "
                                "the tensor another name in \"tensors\"",
                                tensor.name));
  }

  void define_tensors(TimeStepsByDim& times) {
    definitions_ = spec_.tensors;
    if (definitions_.empty()) {
      std::vector<std::string> dims;
      for (const WindowDim& w : window_dims_) dims.push_back(w.name);
      const std::vector<std::string> names =
          spec_.variables ? *spec_.variables : default_variables(dims);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string path = fmt::format("variables[{}]", i);
        definitions_.push_back({.name = names[i], .variables = {names[i]}, .path = path});
      }
    } else if (spec_.variables) {
      // The tensors name the variables used; an unknown name here is an error all the same.
      for (std::size_t i = 0; i < spec_.variables->size(); ++i)
        find_variable((*spec_.variables)[i], fmt::format("variables[{}]", i));
    }
    for (TensorDefinition& tensor : definitions_) {
      check_tensor_name(tensor.name, tensor.path);
      for (const OffsetList& list : tensor.durations) {
        tensor.by_label.emplace_back(list.dim, resolve_offsets(list, window_dims_, times));
        tensor.offsets.emplace_back(list.dim, std::vector<std::int64_t>(list.durations.size()));
      }
      for (const auto& [dim, steps] : tensor.offsets) {
        if (window_number(window_dims_, dim) < 0)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("{}.offsets.{}: offsets need a dimension of \"window\"",
                                  tensor.path, dim));
      }
    }
  }

  void count_positions(TimeStepsByDim& times) {
    reaches_ = resolve_reaches(definitions_, spec_.reserve, window_dims_, *dataset_, times);
    samples_ = 1;
    for (std::size_t w = 0; w < window_dims_.size(); ++w) {
      const WindowSpec& window = spec_.window[w];
      const std::int64_t length = selected(window.dim).size();
      auto [least, most] = offset_range(window.dim);
      for (const OffsetList& list : spec_.reserve)
        if (list.dim == window.dim)
          for (const std::int64_t step : list.steps) {
            least = std::min(least, step);
            most = std::max(most, step);
          }
      std::int64_t first = 0, last = -1;  // numbers of the window's starts
      if (window.wrap) {
        last = length > 0 ? (length - 1) / window.stride : -1;
      } else {
        first = (-least + window.stride - 1) / window.stride;
        const std::int64_t room = length - window.size - most;
        last = room >= 0 ? room / window.stride : -1;
        if (window.edge != WindowSpec::Edge::drop) {
          // One more when something is left behind the last whole window, and every offset of it
          // begins inside.
          const std::int64_t next = std::max(first, last + 1);
          const bool left = last < first || last * window.stride < room;
          if (left && next * window.stride + most < length) last = next;
        }
      }
      if (last < first)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("window.{}: no window of {} fits: the selection has {} positions{}",
                                window.dim, window.size, length,
                                least != 0 || most != 0 ? " and the offsets need more" : ""));
      grid_.first.push_back(first);
      grid_.counts.push_back(last - first + 1);
      grid_.strides.push_back(window.stride);
      if (__builtin_mul_overflow(samples_, grid_.counts[w], &samples_) || samples_ > INT64_C(1)
                                                                                         << 60)
        throw Error(ErrorCode::not_supported, "the view has more than 2^60 samples");
    }
    all_windows_ = samples_;
    dropped_ = restrict_windows(restricted_view(times), grid_);
    windows_ = samples_ = count_windows(grid_);
    check_batches();
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

  /// The steps that offsets go before and behind the window, at most: {-1, 2}.
  std::pair<std::int64_t, std::int64_t> offset_range(const std::string& dim) const {
    std::int64_t least = 0, most = 0;
    for (const TensorDefinition& tensor : definitions_)
      if (const auto* steps = tensor.offsets_along(dim)) {
        least = std::min(least, *std::min_element(steps->begin(), steps->end()));
        most = std::max(most, *std::max_element(steps->begin(), steps->end()));
      }
    return {least, most};
  }

  /// How long the windows of a batch are: the view's sizes, but less where every one of them is
  /// partial.
  Dims sizes_of(std::int64_t batch) const {
    if (!has_partial_ || rows_of(batch) == 0) return sizes_;
    Dims sizes = sizes_;
    for (std::size_t w = 0; w < sizes_.size(); ++w)
      if (spec_.window[w].edge == WindowSpec::Edge::partial) sizes[w] = 1;
    for (const Row& row : rows(0, batch))  // without a shuffle, so that epochs do not differ
      for (std::size_t w = 0; w < sizes_.size(); ++w) {
        std::int64_t first = row.starts[w] + offset_range(window_dims_[w].name).first;
        for (const Reach::Labelled& each : reaches_[w].labelled)
          for (std::size_t o = 0; o < each.labels->size(); ++o)
            if (each.restriction == "offsets")
              first = std::min(first, each.labels->first(o, row.starts[w]));
        const std::int64_t inside = selected(window_dims_[w].name).size() - first;
        sizes[w] = std::max(sizes[w], std::min(sizes_[w], inside));
      }
    return sizes;
  }

  void add_tensor(std::uint32_t t) {
    const TensorDefinition& tensor = definitions_[t];
    std::vector<std::uint32_t>& numbers = numbers_.emplace_back();
    for (std::size_t i = 0; i < tensor.variables.size(); ++i)
      numbers.push_back(use_variable(
          tensor.variables[i],
          spec_.tensors.empty() ? tensor.path : fmt::format("{}.variables[{}]", tensor.path, i)));
    TensorLayout layout = lay_out(source(t), sizes_);
    if (std::any_of(window_dims_.begin(), window_dims_.end(),
                    [](const WindowDim& w) { return w.padded; }))
      layout.spec.pad = pad_element(layout.spec.type, tensor.path);
    layout.spec.channels = channel_names(source(t), layout, sizes_, *dataset_);
    for (std::uint32_t number : numbers) add_converter(t, number, layout.spec.type);
    for (VariablePlacement& placement : layout.placements)
      placements_.push_back(std::move(placement));
    sample_bytes_.push_back(layout.sample_bytes);
    tensors_.push_back(std::move(layout.spec));
  }

  /// What a tensor is laid out from. Throws unless its variables are of one type.
  TensorSource source(std::uint32_t t) const {
    const TensorDefinition& tensor = definitions_[t];
    const Variable& first = *variables_[numbers_[t].front()];
    const DataType type = result_type(first);
    TensorSource source{t, tensor, type, {}, selected_, window_dims_, spec_.batch_size};
    for (std::uint32_t number : numbers_[t]) {
      const Variable& variable = *variables_[number];
      if (!(result_type(variable) == type))
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("{}: '{}' is {} and '{}' is {}; give the view a \"dtype\" to stack them",
                        tensor.path, first.name, type.name(), variable.name,
                        result_type(variable).name()));
      source.variables.emplace_back(number, &variable);
    }
    return source;
  }

  WindowedVariables windowed_variables() const {
    return {variables_, selected_, window_dims_, grid_};
  }

  std::vector<TensorDefinition> definitions_;
  WindowGrid grid_;                                  // of the windows' starts
  std::vector<Reach> reaches_;                       // per window dimension
  std::vector<std::vector<std::uint32_t>> numbers_;  // of the variables of each tensor
  std::vector<std::int64_t> sample_bytes_;           // per tensor
  Dims sizes_;                                       // of the windows
  bool has_partial_ = false;
  std::int64_t samples_ = 1;
  std::int64_t windows_ = 1;      // of the grid: samples and skipped ones
  std::int64_t all_windows_ = 1;  // before restrictions
  Dropped dropped_;               // by restrictions of the grid
  bool samples_known_ = false;
  std::shared_ptr<const SampleIndex> index_;  // null: every window is a sample
  ChunkGroups groups_;
  std::unique_ptr<const EpochOrder> order_;
};

}  // namespace

std::shared_ptr<const View> make_window_view(std::shared_ptr<const Dataset> dataset,
                                             ViewSpec spec) {
  return std::make_shared<WindowView>(std::move(dataset), std::move(spec));
}

}  // namespace batchfs
