// Views that produce the batches of xbatcher.BatchGenerator, in its order, with its shapes and
// dimension names. Source: xbatcher 0.4, generators.py.
//
// Every sliced dimension has patches; every batch takes a run of patches of each dimension, and
// holds their product, the last dimension fastest.

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/reached_numbers.h"
#include "engine/view/view_kinds.h"

namespace batchfs {

namespace {

/// Plans list every patch of a batch.
constexpr std::int64_t kMaxPatches = INT64_C(1) << 24;

class XbatcherView final : public View {
 public:
  XbatcherView(std::shared_ptr<const Dataset> dataset, ViewSpec spec)
      : View(std::move(dataset), std::move(spec)), x_(*spec_.xbatcher) {
    const std::vector<std::string> names =
        spec_.variables ? *spec_.variables : default_variables({});
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string path = fmt::format("variables[{}]", i);
      check_tensor_name(names[i], path);
      use_variable(names[i], path);
    }
    for (const auto& [dim, shared] : x_.input_overlap) check_dim(dim, "input_overlap");
    // Batch dimensions first, then input dimensions, each in the order given.
    for (const auto& [dim, size] : x_.batch_dims)
      if (!find(x_.input_dims, dim)) slice(dim, size, "batch_dims");
    for (const auto& [dim, size] : x_.input_dims) slice(dim, size, "input_dims");
    group_patches();
    find_others();
    for (std::uint32_t v = 0; v < variables_.size(); ++v)
      if (variables_[v]->part <= 0) place(v);
    check_normalized_names();
    if (spec_.normalize) {
      std::vector<std::uint32_t> normalized;
      for (const auto& [variable, numbers] : normalizations_) normalized.push_back(variable);
      check_numbers(*this, *spec_.normalize, normalized);
    }
    collect_coordinates();
  }

  std::int64_t samples() const override { return batches_; }
  std::int64_t batch_size() const override { return 1; }
  std::int64_t batches() const override { return batches_; }

  std::vector<Dims> shapes(std::int64_t batch) const override {
    std::vector<Dims> result;
    for (std::uint32_t t = 0; t < tensors_.size(); ++t)
      result.push_back(shape_of(t, patches_in(batch)));
    return result;
  }

  std::int64_t row_count(std::int64_t batch) const override { return patches_in(batch); }
  std::int64_t sample_count(std::int64_t) const override { return 1; }
  std::vector<std::int64_t> samples_in(std::int64_t, std::int64_t batch, RowRange) const override {
    return {batch};
  }

  /// Along the sliced dimensions those of a batch that is one patch; concatenated patches have
  /// none.
  std::vector<BatchCoordinate> batch_coordinates(std::int64_t, std::int64_t batch) const override {
    std::vector<BatchCoordinate> result;
    Dims starts(sliced_.size());
    starts_of(batch, starts.begin());
    for (const Coordinate& whole : coordinates_) {
      const auto has = [&](const TensorSpec& t) { return contains(t.dims, whole.name); };
      const auto is_called = [&](const TensorSpec& t) { return t.name == whole.name; };
      const int w = sliced_number(whole.name);
      const bool lost = (w >= 0 && x_.concat_input_dims) || (whole.name == "sample" && stacks());
      if (lost || std::none_of(tensors_.begin(), tensors_.end(), has) ||
          std::any_of(tensors_.begin(), tensors_.end(), is_called))
        continue;
      const std::int64_t first = w < 0 ? 0 : starts[static_cast<std::size_t>(w)];
      BatchCoordinate coordinate = coordinate_part(*whole.values, first, extent(whole.name));
      coordinate.name = whole.name;
      coordinate.dims = {whole.name};
      coordinate.note = whole.note;
      coordinate.attributes = whole.attributes;
      result.push_back(std::move(coordinate));
    }
    return result;
  }

 protected:
  std::vector<Row> rows(std::int64_t, std::int64_t batch, RowRange range) const override {
    const std::vector<std::pair<std::int64_t, std::int64_t>> ranges = patch_ranges(batch);
    std::vector<Row> result;
    Dims at(ranges.size());
    std::int64_t rest = range.first;
    for (std::size_t w = ranges.size(); w-- > 0;) {
      at[w] = rest % ranges[w].second;
      rest /= ranges[w].second;
    }
    for (std::int64_t p = range.first; p < range.end(); ++p) {
      Row row;
      row.starts.resize(ranges.size());
      for (std::size_t w = 0; w < ranges.size(); ++w)
        row.starts[w] = (ranges[w].first + at[w]) * sliced_[w].stride;
      for (std::int64_t bytes : patch_bytes_) row.offsets.push_back(p * bytes);
      result.push_back(std::move(row));
      for (std::size_t w = ranges.size(); w-- > 0;) {
        if (++at[w] < ranges[w].second) break;
        at[w] = 0;
      }
    }
    return result;
  }

  /// The starts of a batch's first patch.
  void starts_of(std::int64_t sample, std::int64_t* starts) const override {
    const std::vector<std::pair<std::int64_t, std::int64_t>> ranges = patch_ranges(sample);
    for (std::size_t w = 0; w < ranges.size(); ++w) starts[w] = ranges[w].first * sliced_[w].stride;
  }

 private:
  struct Sliced {
    std::string dim;
    std::int64_t size, stride, patches;
    std::int64_t per_batch = 1, batches = 1;
  };

  static const std::int64_t* find(const std::vector<std::pair<std::string, std::int64_t>>& list,
                                  const std::string& dim) {
    for (const auto& [name, value] : list)
      if (name == dim) return &value;
    return nullptr;
  }
  static bool contains(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  }

  /// The dataset has the dimension and the selection leaves it.
  void check_dim(const std::string& dim, const char* key) const {
    try {
      dataset_->dim_size(dim);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("xbatcher.{}.{}: {}", key, dim, error.why()));
    }
    if (selected(dim).drops_dim())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "xbatcher.{}.{}: \"select\" takes one position of it, which drops the dimension", key,
              dim));
  }

  void slice(const std::string& dim, std::int64_t size, const char* key) {
    auto fail = [&](const std::string& why) {
      return Error(ErrorCode::invalid_argument, fmt::format("xbatcher.{}.{}: {}", key, dim, why));
    };
    check_dim(dim, key);
    const std::int64_t length = selected(dim).size();
    if (size > length) throw fail(fmt::format("{} is more than the {} there are", size, length));
    const std::int64_t* overlap = find(x_.input_overlap, dim);
    const std::int64_t shared = overlap ? *overlap : 0;
    if (shared >= size)
      throw fail(fmt::format("the overlap {} is not smaller than the size {}", shared, size));
    sliced_.push_back({dim, size, size - shared, (length - shared) / (size - shared)});
    window_dims_.push_back({dim, size, false});
  }

  void group_patches() {
    std::int64_t in_batch = 1;
    const bool duplicate = std::any_of(x_.batch_dims.begin(), x_.batch_dims.end(),
                                       [&](const auto& d) { return find(x_.input_dims, d.first); });
    for (Sliced& s : sliced_) {
      const std::int64_t* batch = find(x_.batch_dims, s.dim);
      const bool is_input = find(x_.input_dims, s.dim) != nullptr;
      if (!x_.concat_input_dims || (batch && !duplicate)) {
        s.per_batch = 1;
        s.batches = s.patches;
      } else if (batch) {
        // xbatcher groups by count, not by containment.
        s.per_batch = is_input ? (*batch + s.stride - 1) / s.stride : 1;
        s.batches = selected(s.dim).size() / *batch;
      } else {
        s.per_batch = s.patches;
        s.batches = 1;
      }
      if (s.batches < 1 || (s.batches - 1) * s.per_batch >= s.patches)
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format(
                "xbatcher.batch_dims.{}: xbatcher has a batch without patches here and fails; "
                "use a batch length that is a multiple of the input length",
                s.dim));
      if (__builtin_mul_overflow(batches_, s.batches, &batches_) || batches_ > INT64_C(1) << 60)
        throw Error(ErrorCode::not_supported, "xbatcher: more than 2^60 batches");
      if (__builtin_mul_overflow(in_batch, s.per_batch, &in_batch) || in_batch > kMaxPatches)
        throw Error(ErrorCode::not_supported,
                    fmt::format("xbatcher: more than {} patches in a batch", kMaxPatches));
    }
  }

  /// The dimensions that are not input, in the order of their first appearance, as xarray has those
  /// of ds[variables]; of a whole dataset also those that coordinates alone have.
  void find_others() {
    const auto add_dims = [this](const Variable& variable) {
      for (const std::string& dim : variable.dims)
        if (!selected(dim).drops_dim() && !find(x_.input_dims, dim) && !contains(others_, dim))
          others_.push_back(dim);
    };
    if (spec_.variables)
      for (const Variable* variable : variables_) add_dims(*variable);
    else
      for (const Variable& variable : dataset_->variables())
        if (source_prefix(variable).empty()) add_dims(variable);
  }

  /// First patch and number of patches of each sliced dimension.
  std::vector<std::pair<std::int64_t, std::int64_t>> patch_ranges(std::int64_t batch) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges(sliced_.size());
    for (std::size_t w = sliced_.size(); w-- > 0;) {
      const Sliced& s = sliced_[w];
      const std::int64_t first = batch % s.batches * s.per_batch;
      ranges[w] = {first, std::min(s.per_batch, s.patches - first)};
      batch /= s.batches;
    }
    return ranges;
  }

  std::int64_t patches_in(std::int64_t batch) const {
    std::int64_t count = 1;
    for (const auto& [first, number] : patch_ranges(batch)) count *= number;
    return count;
  }

  int sliced_number(const std::string& dim) const {
    for (std::size_t w = 0; w < sliced_.size(); ++w)
      if (sliced_[w].dim == dim) return static_cast<int>(w);
    return -1;
  }

  std::int64_t extent(const std::string& dim) const {
    const int w = sliced_number(dim);
    return w >= 0 ? sliced_[static_cast<std::size_t>(w)].size : selected(dim).size();
  }

  std::vector<std::string> kept_dims(const Variable& variable) const {
    std::vector<std::string> dims;
    for (const std::string& dim : variable.dims)
      if (!selected(dim).drops_dim()) dims.push_back(dim);
    return dims;
  }

  /// Dimensions that are not input are stacked to "sample" when there are several (the patches
  /// count).
  bool stacks() const { return others_.size() + (x_.concat_input_dims ? 1 : 0) >= 2; }

  Dims shape_of(std::uint32_t t, std::int64_t patches) const {
    Dims shape = patch_shapes_[t];
    if (x_.concat_input_dims) shape[0] *= patches;  // "input_batch", or "sample" with it outermost
    return shape;
  }

  void place(std::uint32_t v) {
    const Variable& variable = *variables_[v];
    check_repeated_dims(variable, "variables");
    const DataType type = result_type(variable);
    const std::vector<std::string> own = kept_dims(variable);
    const std::string suffix = x_.concat_input_dims ? "_input" : "";
    TensorSpec spec{variable.name, type, {}, {}};
    std::vector<std::string> order;  // of the dimensions inside a patch
    // xarray stacks the variables that have one of the stacked dimensions, and repeats them along
    // the others. Concatenated patches all do.
    const bool has_stacked =
        x_.concat_input_dims || std::any_of(others_.begin(), others_.end(),
                                            [&](const auto& dim) { return contains(own, dim); });
    if (stacks()) {
      if (contains(own, "sample"))
        throw Error(ErrorCode::not_supported,
                    fmt::format("variables: '{}' has a dimension 'sample', as xbatcher calls what "
                                "it stacks; take \"window\" "
                                "in place of \"xbatcher\"",
                                variable.name));
      std::int64_t stacked = 1;
      for (const std::string& dim : others_) {
        if (!has_stacked) break;
        order.push_back(dim);
        if (__builtin_mul_overflow(stacked, extent(dim), &stacked))
          throw Error(ErrorCode::not_supported,
                      fmt::format("'{}' has more than 2^63 stacked samples", variable.name));
      }
      if (has_stacked) {
        spec.dims.push_back("sample");
        spec.shape.push_back(stacked);
      }
      for (const auto& [dim, size] : x_.input_dims) {
        if (!contains(own, dim)) continue;
        order.push_back(dim);
        spec.dims.push_back(dim + suffix);
        spec.shape.push_back(size);
      }
    } else {
      if (x_.concat_input_dims) {
        spec.dims.push_back("input_batch");
        spec.shape.push_back(1);
      }
      for (const std::string& dim : own) {
        order.push_back(dim);
        spec.dims.push_back(find(x_.input_dims, dim) ? dim + suffix : dim);
        spec.shape.push_back(extent(dim));
      }
    }
    Dims inner;
    for (const std::string& dim : order) inner.push_back(extent(dim));
    const Dims strides = c_strides(inner, type.itemsize);
    patch_bytes_.push_back(element_count(inner) * type.itemsize);
    const auto t = static_cast<std::uint32_t>(tensors_.size());
    const auto axis_along = [&](const std::string& dim) {
      AxisPlacement axis;
      axis.selected = selected(dim);
      axis.window = sliced_number(dim);
      if (axis.window >= 0) axis.size = sliced_[static_cast<std::size_t>(axis.window)].size;
      for (std::size_t d = 0; d < order.size(); ++d)
        if (order[d] == dim) axis.stride = strides[d];
      return axis;
    };
    VariablePlacement placement{t, v, 0, {}, {}};
    for (const std::string& dim : variable.dims) placement.axes.push_back(axis_along(dim));
    for (const std::string& dim : order)
      if (!contains(own, dim)) placement.repeat_along(axis_along(dim));
    if (const Variable& whole = whole_variable(v); whole.is_concatenated())
      for (VariablePlacement& part : joined_.in_parts(whole, placement))
        placements_.push_back(std::move(part));
    else
      placements_.push_back(std::move(placement));
    add_converter(t, v, type);
    patch_shapes_.push_back(spec.shape);
    tensors_.push_back(std::move(spec));
    tensors_.back().shape = shape_of(t, patches_in(0));
    c_strides(tensors_.back().shape, type.itemsize);  // refuses unaddressable shapes
  }

  const XbatcherSpec x_;
  std::vector<Sliced> sliced_;
  std::vector<std::string> others_;  // dimensions that are not input
  std::vector<Dims> patch_shapes_;   // of each tensor, for one patch
  std::vector<std::int64_t> patch_bytes_;
  std::int64_t batches_ = 1;
};

}  // namespace

std::shared_ptr<const View> make_xbatcher_view(std::shared_ptr<const Dataset> dataset,
                                               ViewSpec spec) {
  return std::make_shared<XbatcherView>(std::move(dataset), std::move(spec));
}

}  // namespace batchfs
