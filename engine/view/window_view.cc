// Views by windows: samples are the positions of a window that slides over the selection.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/view/base_view.h"
#include "engine/view/missing.h"
#include "engine/view/skipping_order.h"

namespace batchfs {

namespace {

class WindowView final : public BaseView {
 public:
  WindowView(std::shared_ptr<const Dataset> dataset, ViewSpec spec) : BaseView(std::move(dataset), std::move(spec)) {
    for (const WindowSpec& window : spec_.window) {
      try {
        dataset_->dim_size(window.dim);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("window.{}: {}", window.dim, error.why()));
      }
      if (selected(window.dim).drops_dim())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("window.{}: \"select\" takes one position of it, which drops the dimension", window.dim));
      window_dims_.push_back({window.dim, window.size, window.wrap, window.edge != WindowSpec::Edge::drop});
      sizes_.push_back(window.size);
      has_partial_ = has_partial_ || window.edge == WindowSpec::Edge::partial;
    }
    define_tensors();
    count_positions();
    for (std::uint32_t t = 0; t < definitions_.size(); ++t) add_tensor(t);
    check_zarr_names();
    find_chunk_groups();
    check_normalized_names();
    collect_coordinates();
  }

  std::int64_t samples() const override { return samples_; }
  std::int64_t batch_size() const override { return spec_.batch_size; }

  std::int64_t batches() const override {
    return spec_.remainder == ViewSpec::Remainder::drop ? samples_ / spec_.batch_size
                                                        : (samples_ + spec_.batch_size - 1) / spec_.batch_size;
  }

  std::vector<Dims> shapes(std::int64_t batch) const override {
    std::vector<Dims> result;
    const Dims sizes = sizes_of(batch);
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      result.push_back(sizes == sizes_ ? tensors_[t].shape : lay_out(t, sizes).spec.shape);
      result.back()[0] = rows_of(batch);
    }
    return result;
  }

  BatchPlan plan(std::int64_t epoch, std::int64_t batch) const override {
    const Dims sizes = sizes_of(batch);
    if (sizes == sizes_) return BaseView::plan(epoch, batch);
    // A batch of partial windows: its tensors are smaller.
    BatchPlan plan;
    plan.samples = batch_samples(epoch, batch);
    plan.shapes = shapes(batch);
    std::vector<TensorLayout> layouts;
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) layouts.push_back(lay_out(t, sizes));
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

  bool needs_scan() const override { return spec_.missing == ViewSpec::Missing::skip && !samples_known_; }

  ViewScan scan() const override {
    ViewScan result;
    result.windows = windows_;
    result.grid.first = first_;
    result.grid.counts = counts_;
    for (const WindowSpec& window : spec_.window) result.grid.strides.push_back(window.stride);
    result.placements = &placements_;
    return result;
  }

  std::shared_ptr<const View> with_samples(std::shared_ptr<const SampleIndex> index) const override {
    return with(spec_, true, std::move(index));
  }

  const Order* order() const override { return &spec_.order; }

  std::shared_ptr<const View> with_order(const Order& order) const override {
    ViewSpec spec = spec_;
    spec.order = order;
    return with(std::move(spec), samples_known_, index_);
  }

  std::int64_t mixed_samples() const override {
    switch (spec_.order.shuffle) {
      case Order::Shuffle::none: return 1;
      case Order::Shuffle::global: return samples_;
      case Order::Shuffle::block: break;
    }
    const std::int64_t windows = std::min(spec_.order.window, groups_.count()) * groups_.group_samples();
    // Of windows that are skipped, as many in a run as elsewhere.
    const double kept = static_cast<double>(samples_) / static_cast<double>(windows_);
    return std::max<std::int64_t>(1, index_ ? std::llround(static_cast<double>(windows) * kept) : windows);
  }

  std::vector<std::int64_t> batch_samples(std::int64_t epoch, std::int64_t batch) const override {
    if (needs_scan()) throw Error(ErrorCode::internal, "the samples of this view are not known yet");
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < rows_of(batch); ++i) {
      const std::int64_t position = (batch * spec_.batch_size + i) % samples_;
      numbers.push_back(skipping_order_ ? index_->samples_before(skipping_order_->window(position, epoch))
                                        : spec_.order.sample(position, samples_, epoch, groups_));
    }
    return numbers;
  }

  std::vector<Coordinate> batch_coordinates(std::int64_t epoch, std::int64_t batch) const override {
    std::vector<Coordinate> result;
    auto taken = [&](const std::string& name) {
      return std::any_of(tensors_.begin(), tensors_.end(), [&](const TensorSpec& t) { return t.name == name; }) ||
             std::any_of(result.begin(), result.end(), [&](const Coordinate& c) { return c.name == name; });
    };
    for (std::size_t w = 0; w < window_dims_.size(); ++w) {
      const Coordinate* index = index_coordinate(window_dims_[w].name);
      // Along the samples: where each window begins.
      const std::string name = window_dims_[w].size == 1 && !is_tensor_dim(tensor_dim(window_dims_[w].name))
                                   ? window_dims_[w].name
                                   : window_dims_[w].name + "_start";
      if (index == nullptr || taken(name) || is_tensor_dim(name)) continue;
      const std::size_t itemsize = index->values.type.itemsize;
      const std::vector<Row> all = rows(epoch, batch);
      NdArray values{index->values.type, {static_cast<std::int64_t>(all.size())}, Buffer(all.size() * itemsize)};
      for (std::size_t i = 0; i < all.size(); ++i)
        std::memcpy(values.data.data() + i * itemsize,
                    index->values.data.data() + static_cast<std::size_t>(all[i].starts[w]) * itemsize, itemsize);
      result.push_back({name, {"sample"}, std::move(values), index->note});
    }
    for (const Coordinate& coordinate : coordinates_) {
      const bool is_window = std::any_of(window_dims_.begin(), window_dims_.end(),
                                         [&](const WindowDim& w) { return w.name == coordinate.name; });
      const std::string name = tensor_dim(coordinate.name);
      if (is_window || taken(name) || !is_tensor_dim(name)) continue;
      Buffer copy(coordinate.values.data.size());
      if (copy.size() > 0) std::memcpy(copy.data(), coordinate.values.data.data(), copy.size());
      result.push_back({name, {name},
                        NdArray{coordinate.values.type, coordinate.values.shape, std::move(copy)}, coordinate.note});
    }
    return result;
  }

 protected:
  std::vector<Row> rows(std::int64_t epoch, std::int64_t batch) const override {
    std::vector<Row> result;
    std::int64_t r = 0;
    for (std::int64_t number : batch_samples(epoch, batch)) {
      Row row;
      if (index_ != nullptr) number = index_->window(number);
      row.starts.resize(counts_.size());
      for (std::size_t w = counts_.size(); w-- > 0;) {
        row.starts[w] = (first_[w] + number % counts_[w]) * spec_.window[w].stride;
        number /= counts_[w];
      }
      for (std::int64_t bytes : sample_bytes_) row.offsets.push_back(r * bytes);
      result.push_back(std::move(row));
      ++r;
    }
    return result;
  }

 private:
  /// The same dataset, another specification of it.
  std::shared_ptr<const View> with(ViewSpec spec, bool samples_known, std::shared_ptr<const SampleIndex> index) const {
    auto view = std::make_shared<WindowView>(dataset_, std::move(spec));
    view->samples_known_ = samples_known;
    if (index == nullptr) return view;
    if (index->windows() != windows_) throw Error(ErrorCode::internal, "the samples are those of another view");
    view->samples_ = index->samples();
    if (view->samples_ == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("missing: \"skip\" leaves no sample: each of the {} windows holds a NaN", windows_));
    view->check_batches();
    if (view->spec_.order.shuffle == Order::Shuffle::block)
      view->skipping_order_ = std::make_unique<SkippingBlockOrder>(view->spec_.order, view->groups_, *index);
    view->index_ = std::move(index);
    return view;
  }

  std::int64_t rows_of(std::int64_t batch) const {
    if (spec_.remainder == ViewSpec::Remainder::pad) return spec_.batch_size;
    return std::max<std::int64_t>(0, std::min(spec_.batch_size, samples_ - batch * spec_.batch_size));
  }

  /// `dim` as tensors call it.
  bool is_tensor_dim(const std::string& dim) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const TensorSpec& t) {
      return std::find(t.dims.begin() + 1, t.dims.end(), dim) != t.dims.end();
    });
  }

  /// How tensors call a stored dimension: "sample" is the batch's own.
  static std::string tensor_dim(const std::string& dim) { return dim == "sample" ? "stored_sample" : dim; }

  /// In a Zarr batch an array that is named as a dimension is the dimension's coordinate.
  void check_zarr_names() const {
    if (std::find(spec_.formats.begin(), spec_.formats.end(), "zarr") == spec_.formats.end()) return;
    for (const TensorSpec& tensor : tensors_)
      if (tensor.name == "sample" || is_tensor_dim(tensor.name))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("tensors: '{}' is also the name of a dimension, which the format \"zarr\" cannot have; give "
                                "the tensor another name in \"tensors\"", tensor.name));
  }

  void define_tensors() {
    definitions_ = spec_.tensors;
    if (definitions_.empty()) {
      std::vector<std::string> dims;
      for (const WindowDim& w : window_dims_) dims.push_back(w.name);
      const std::vector<std::string> names = spec_.variables ? *spec_.variables : default_variables(dims);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string path = fmt::format("variables[{}]", i);
        definitions_.push_back({names[i], {names[i]}, {}, std::nullopt, std::nullopt, path});
      }
    } else if (spec_.variables) {
      // The tensors say what is used; a name that is wrong is an error all the same.
      for (std::size_t i = 0; i < spec_.variables->size(); ++i)
        find_variable((*spec_.variables)[i], fmt::format("variables[{}]", i));
    }
    for (const TensorDefinition& tensor : definitions_) {
      check_tensor_name(tensor.name, tensor.path);
      for (const auto& [dim, steps] : tensor.offsets) {
        const bool is_window = std::any_of(window_dims_.begin(), window_dims_.end(),
                                           [&, &name = dim](const WindowDim& w) { return w.name == name; });
        if (!is_window)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("{}.offsets.{}: offsets need a dimension of \"window\"", tensor.path, dim));
      }
    }
  }

  const std::vector<std::int64_t>* offsets_of(const TensorDefinition& tensor, const std::string& dim) const {
    for (const auto& [name, steps] : tensor.offsets)
      if (name == dim) return &steps;
    return nullptr;
  }

  void count_positions() {
    samples_ = 1;
    for (std::size_t w = 0; w < window_dims_.size(); ++w) {
      const WindowSpec& window = spec_.window[w];
      const std::int64_t length = selected(window.dim).size();
      const auto [least, most] = offset_range(window.dim);
      std::int64_t first = 0, last = -1;  // numbers of the window's starts
      if (window.wrap) {
        last = length > 0 ? (length - 1) / window.stride : -1;
      } else {
        first = (-least + window.stride - 1) / window.stride;
        const std::int64_t room = length - window.size - most;
        last = room >= 0 ? room / window.stride : -1;
        if (window.edge != WindowSpec::Edge::drop) {
          // One more when something is left behind the last whole window, and every offset of it begins inside.
          const std::int64_t next = std::max(first, last + 1);
          const bool left = last < first || last * window.stride < room;
          if (left && next * window.stride + most < length) last = next;
        }
      }
      if (last < first)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("window.{}: no window of {} fits: the selection has {} positions{}", window.dim,
                                window.size, length, least != 0 || most != 0 ? " and the offsets need more" : ""));
      first_.push_back(first);
      counts_.push_back(last - first + 1);
      if (__builtin_mul_overflow(samples_, counts_[w], &samples_) || samples_ > INT64_C(1) << 60)
        throw Error(ErrorCode::not_supported, "the view has more than 2^60 samples");
    }
    windows_ = samples_;
    check_batches();
  }

  void check_batches() const {
    if (batches() == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("batch.remainder: \"drop\" leaves no batch: there are {} samples, a batch has {}",
                              samples_, spec_.batch_size));
  }

  /// The steps that offsets go before and behind the window, at most: {-1, 2}.
  std::pair<std::int64_t, std::int64_t> offset_range(const std::string& dim) const {
    std::int64_t least = 0, most = 0;
    for (const TensorDefinition& tensor : definitions_)
      if (const auto* steps = offsets_of(tensor, dim)) {
        least = std::min(least, *std::min_element(steps->begin(), steps->end()));
        most = std::max(most, *std::max_element(steps->begin(), steps->end()));
      }
    return {least, most};
  }

  /// How long the windows of a batch are: the view's sizes, but less where every one of them is partial.
  Dims sizes_of(std::int64_t batch) const {
    if (!has_partial_ || rows_of(batch) == 0) return sizes_;
    Dims sizes = sizes_;
    for (std::size_t w = 0; w < sizes_.size(); ++w)
      if (spec_.window[w].edge == WindowSpec::Edge::partial) sizes[w] = 1;
    for (const Row& row : rows(0, batch))  // without a shuffle, so that epochs do not differ
      for (std::size_t w = 0; w < sizes_.size(); ++w) {
        const std::int64_t least = offset_range(window_dims_[w].name).first;
        const std::int64_t inside = selected(window_dims_[w].name).size() - row.starts[w] - least;
        sizes[w] = std::max(sizes[w], std::min(sizes_[w], inside));
      }
    return sizes;
  }

  int window_number(const std::string& dim) const {
    for (std::size_t w = 0; w < window_dims_.size(); ++w)
      if (window_dims_[w].name == dim) return static_cast<int>(w);
    return -1;
  }

  /// With windows of these sizes.
  std::int64_t extent(const TensorDefinition& tensor, const std::string& dim, const Dims& sizes) const {
    const int w = window_number(dim);
    if (w < 0) return selected(dim).size();
    const auto* steps = offsets_of(tensor, dim);
    return sizes[static_cast<std::size_t>(w)] * (steps ? static_cast<std::int64_t>(steps->size()) : 1);
  }

  /// A variable's dimensions that are left after selection, in stored order.
  std::vector<std::string> kept_dims(const Variable& variable) const {
    std::vector<std::string> dims;
    for (const std::string& dim : variable.dims)
      if (!selected(dim).drops_dim()) dims.push_back(dim);
    return dims;
  }

  void add_tensor(std::uint32_t t) {
    const TensorDefinition& tensor = definitions_[t];
    std::vector<std::uint32_t>& numbers = numbers_.emplace_back();
    for (std::size_t i = 0; i < tensor.variables.size(); ++i)
      numbers.push_back(use_variable(tensor.variables[i],
                                     spec_.tensors.empty() ? tensor.path : fmt::format("{}.variables[{}]", tensor.path, i)));
    TensorLayout layout = lay_out(t, sizes_);
    if (std::any_of(window_dims_.begin(), window_dims_.end(), [](const WindowDim& w) { return w.padded; }))
      layout.spec.pad = pad_element(layout.spec.type, tensor.path);
    layout.spec.channels = channel_names(t, layout);
    for (std::uint32_t number : numbers) add_converter(t, number, layout.spec.type);
    for (VariablePlacement& placement : layout.placements) placements_.push_back(std::move(placement));
    sample_bytes_.push_back(layout.sample_bytes);
    tensors_.push_back(std::move(layout.spec));
  }

  struct TensorLayout {
    TensorSpec spec;
    std::vector<VariablePlacement> placements;
    std::int64_t sample_bytes = 0;
    std::vector<std::vector<std::string>> joined;  // dimensions of each variable that went into the stack
  };

  /// A tensor whose windows have these sizes.
  TensorLayout lay_out(std::uint32_t t, const Dims& sizes) const {
    const TensorDefinition& tensor = definitions_[t];
    const std::vector<std::uint32_t>& numbers = numbers_[t];
    auto fail = [&](const std::string& why) { return Error(ErrorCode::invalid_argument, tensor.path + ": " + why); };
    auto too_large = [&] { return fail("a batch of this tensor is larger than 2^63 bytes"); };
    const Variable& first = *variables_[numbers.front()];
    const DataType type = result_type(first);
    for (std::uint32_t number : numbers)
      if (!(result_type(*variables_[number]) == type))
        throw fail(fmt::format("'{}' is {} and '{}' is {}; give the view a \"dtype\" to stack them", first.name,
                               type.name(), variables_[number]->name, result_type(*variables_[number]).name()));
    const std::vector<std::string> first_dims = kept_dims(first);

    // The tensor's own dimensions, and which are joined into the stack.
    std::vector<std::string> dims;
    auto is_joined = [&](const std::string& dim) {
      if (!tensor.stack) return false;
      if (tensor.dims) return std::find(tensor.dims->begin(), tensor.dims->end(), dim) == tensor.dims->end();
      return window_number(dim) < 0;
    };
    if (tensor.dims) {
      dims = *tensor.dims;
      if (std::find(dims.begin(), dims.end(), "sample") != dims.end() &&
          std::find(first_dims.begin(), first_dims.end(), "sample") == first_dims.end())
        throw fail("\"dims\" leaves out \"sample\"");
      for (const std::string& dim : dims) {
        if (tensor.stack && dim == *tensor.stack) continue;
        if (std::find(first_dims.begin(), first_dims.end(), dim) == first_dims.end())
          throw fail(fmt::format("dims: '{}' has no dimension '{}'{}", first.name, dim, did_you_mean(dim, first_dims)));
      }
      if (tensor.stack && std::find(dims.begin(), dims.end(), *tensor.stack) == dims.end())
        throw fail(fmt::format("dims: the stack '{}' is missing", *tensor.stack));
      if (!tensor.stack && dims.size() != first_dims.size())
        throw fail(fmt::format("dims: name every dimension of '{}': {}", first.name, join(first_dims, ", ")));
    } else {
      if (tensor.stack) dims.push_back(*tensor.stack);
      for (const std::string& dim : first_dims)
        if (!is_joined(dim)) dims.push_back(dim);
    }
    if (tensor.stack && std::find(first_dims.begin(), first_dims.end(), *tensor.stack) != first_dims.end() &&
        !is_joined(*tensor.stack))
      throw fail(fmt::format("stack: '{}' is a dimension of '{}'", *tensor.stack, first.name));

    // Joined dimensions of each variable, in the first variable's order, and how many channels they make.
    std::vector<std::vector<std::string>> joined;
    std::vector<std::int64_t> channels;
    std::int64_t channel_count = 0;
    for (std::uint32_t number : numbers) {
      const std::vector<std::string> own = kept_dims(*variables_[number]);
      std::vector<std::string> mine;
      for (const std::string& dim : first_dims)
        if (is_joined(dim) && std::find(own.begin(), own.end(), dim) != own.end()) mine.push_back(dim);
      for (const std::string& dim : own)
        if (is_joined(dim) && std::find(mine.begin(), mine.end(), dim) == mine.end()) mine.push_back(dim);
      for (const std::string& dim : dims)
        if (!(tensor.stack && dim == *tensor.stack) && std::find(own.begin(), own.end(), dim) == own.end())
          throw fail(fmt::format("'{}' has no dimension '{}', which the tensor has", variables_[number]->name, dim));
      std::int64_t count = 1;
      for (const std::string& dim : mine)
        if (__builtin_mul_overflow(count, extent(tensor, dim, sizes), &count)) throw too_large();
      joined.push_back(std::move(mine));
      channels.push_back(count);
      if (__builtin_add_overflow(channel_count, count, &channel_count)) throw too_large();
    }

    TensorSpec spec{tensor.name, type, {"sample"}, {spec_.batch_size}};
    for (const std::string& dim : dims) {
      const std::string name = tensor.stack && dim == *tensor.stack ? dim : tensor_dim(dim);
      if (std::find(spec.dims.begin(), spec.dims.end(), name) != spec.dims.end())
        throw fail(fmt::format("two of its dimensions would be called '{}'", name));
      spec.dims.push_back(name);
      spec.shape.push_back(tensor.stack && dim == *tensor.stack ? channel_count : extent(tensor, dim, sizes));
    }
    Dims sample_shape;
    for (std::size_t d = 1; d < spec.shape.size(); ++d) sample_shape.push_back(spec.shape[d]);
    Dims strides;
    try {
      strides = c_strides(sample_shape, type.itemsize);
      c_strides(spec.shape, type.itemsize);  // refuses what cannot be addressed
    } catch (const Error&) {
      throw too_large();
    }
    TensorLayout layout;
    layout.sample_bytes = element_count(sample_shape) * type.itemsize;
    if (tensor.stack) {
      const auto axis = std::find(spec.dims.begin(), spec.dims.end(), *tensor.stack);
      spec.stack_axis = static_cast<int>(axis - spec.dims.begin());
    }

    auto stride_of = [&](const std::string& dim) -> std::int64_t {
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (dims[d] == dim) return strides[d];
      return 0;
    };
    std::int64_t channel = 0;
    for (std::size_t v = 0; v < numbers.size(); ++v) {
      const Variable& variable = *variables_[numbers[v]];
      VariablePlacement placement{t, numbers[v], tensor.stack ? channel * stride_of(*tensor.stack) : 0, {}};
      for (const std::string& dim : variable.dims) {
        AxisPlacement axis;
        axis.selected = selected(dim);
        axis.window = window_number(dim);
        if (axis.window >= 0) {
          axis.size = sizes[static_cast<std::size_t>(axis.window)];
          axis.wrap = window_dims_[static_cast<std::size_t>(axis.window)].wrap;
          if (const auto* steps = offsets_of(tensor, dim)) axis.offsets = *steps;
        }
        const auto in_stack = std::find(joined[v].begin(), joined[v].end(), dim);
        if (in_stack != joined[v].end()) {
          axis.stride = stride_of(*tensor.stack);
          for (auto later = in_stack + 1; later != joined[v].end(); ++later) axis.stride *= extent(tensor, *later, sizes);
        } else if (!axis.selected.drops_dim()) {
          axis.stride = stride_of(dim);
        }
        placement.axes.push_back(std::move(axis));
      }
      channel += channels[v];
      layout.placements.push_back(std::move(placement));
    }
    layout.spec = std::move(spec);
    layout.joined = std::move(joined);
    return layout;
  }

  /// A variable's name and its place along each dimension that was joined, for every channel of a stack.
  std::vector<std::string> channel_names(std::uint32_t t, const TensorLayout& layout) const {
    constexpr std::int64_t kMostNames = 1 << 16;
    const TensorDefinition& tensor = definitions_[t];
    if (!tensor.stack || layout.spec.shape[static_cast<std::size_t>(layout.spec.stack_axis)] > kMostNames) return {};
    std::vector<std::string> names;
    for (std::size_t v = 0; v < numbers_[t].size(); ++v) {
      std::vector<std::string> of_variable{variables_[numbers_[t][v]]->name};
      for (const std::string& dim : layout.joined[v]) {
        const std::vector<std::string> labels = labels_along(tensor, dim);
        std::vector<std::string> longer;
        for (const std::string& name : of_variable)
          for (const std::string& label : labels) longer.push_back(name + "_" + label);
        of_variable = std::move(longer);
      }
      std::move(of_variable.begin(), of_variable.end(), std::back_inserter(names));
    }
    return names;
  }

  /// Steps of a window by their distance from its begin, other positions by their label.
  std::vector<std::string> labels_along(const TensorDefinition& tensor, const std::string& dim) const {
    const std::int64_t count = extent(tensor, dim, sizes_);
    const int window = window_number(dim);
    const Variable* index = window < 0 ? dataset_->index_of(dim) : nullptr;
    const std::vector<std::int64_t>* steps = offsets_of(tensor, dim);
    std::vector<std::string> labels;
    for (std::int64_t i = 0; i < count; ++i) {
      if (index != nullptr) {
        labels.push_back(label_text(dataset_->index_values(dim), selected(dim)[i]));
      } else if (window >= 0) {
        const std::int64_t size = sizes_[static_cast<std::size_t>(window)];
        labels.push_back(std::to_string((steps != nullptr ? (*steps)[static_cast<std::size_t>(i / size)] : 0) + i % size));
      } else {
        labels.push_back(std::to_string(selected(dim)[i]));
      }
    }
    return labels;
  }

  /// For order "block": which samples share chunks.
  void find_chunk_groups() {
    for (std::size_t w = 0; w < window_dims_.size(); ++w) {
      const std::string& dim = window_dims_[w].name;
      const std::int64_t stride = spec_.window[w].stride;
      std::int64_t chunk = 1;
      for (const Variable* variable : variables_)
        for (std::size_t d = 0; d < variable->dims.size(); ++d)
          if (variable->dims[d] == dim) chunk = std::max(chunk, variable->array->grid().chunk_shape()[d]);
      ChunkGroups::Axis axis{counts_[w], 0, std::max<std::int64_t>(1, chunk / stride)};
      if (chunk % stride == 0 && selected(dim).is_range()) {
        const std::int64_t at = selected(dim)[first_[w] * stride] % chunk;
        axis.lead = std::min(((chunk - at) % chunk + stride - 1) / stride, counts_[w]);
      }
      if (axis.whole() == 0) axis = {counts_[w], 0, counts_[w]};  // no border of a chunk on either side
      groups_.axes.push_back(axis);
    }
    if (spec_.order.window == 0) spec_.order.window = default_mixing();
  }

  /// As many groups as decode to about 128 MB: mixed well, and kept by any machine.
  std::int64_t default_mixing() const {
    constexpr double kBytes = 128 << 20;
    double bytes = 0;
    for (const Variable* variable : variables_) {
      double chunks = 1;
      for (std::size_t d = 0; d < variable->dims.size(); ++d) {
        const std::int64_t chunk = std::max<std::int64_t>(1, variable->array->grid().chunk_shape()[d]);
        const int w = window_number(variable->dims[d]);
        const std::int64_t span = w < 0 ? selected(variable->dims[d]).size()
                                        : groups_.axes[static_cast<std::size_t>(w)].group *
                                              spec_.window[static_cast<std::size_t>(w)].stride;
        chunks *= static_cast<double>((span + chunk - 1) / chunk);
      }
      bytes += chunks * static_cast<double>(variable->array->chunk_bytes());
    }
    return static_cast<std::int64_t>(std::clamp(kBytes / std::max(bytes, 1.0), 1.0, 1024.0));
  }

  std::vector<TensorDefinition> definitions_;
  std::vector<std::int64_t> first_, counts_;   // of the starts, per window dimension
  std::vector<std::vector<std::uint32_t>> numbers_;  // of the variables of each tensor
  std::vector<std::int64_t> sample_bytes_;     // per tensor
  Dims sizes_;                                 // of the windows
  bool has_partial_ = false;
  std::int64_t samples_ = 1;
  std::int64_t windows_ = 1;                   // samples, and what is skipped
  bool samples_known_ = false;
  std::shared_ptr<const SampleIndex> index_;   // null: every window is a sample
  ChunkGroups groups_;
  std::unique_ptr<const SkippingBlockOrder> skipping_order_;
};

}  // namespace

std::shared_ptr<const View> make_window_view(std::shared_ptr<const Dataset> dataset, ViewSpec spec) {
  return std::make_shared<WindowView>(std::move(dataset), std::move(spec));
}

}  // namespace batchfs
