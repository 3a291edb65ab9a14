#include "engine/view/tensors/tensor_layout.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::int64_t ratio_of(const Variable& variable, std::size_t d) {
  const AxisJoin* join = variable.join_along(d);
  return join != nullptr ? join->ratio() : 1;
}

/// The first of a tensor's variables that has the dimension, and its place in it; null: none has.
std::pair<const Variable*, std::size_t> owner_of(const TensorSource& tensor,
                                                 const std::string& dim) {
  for (const TensorSource::Channels& each : tensor.variables)
    for (std::size_t d = 0; d < each.variable->dims.size(); ++d)
      if (each.variable->dims[d] == dim) return {each.variable, d};
  return {nullptr, 0};
}

/// Positions of the tensor for each of the view's.
std::int64_t scale_along(const TensorSource& tensor, const std::string& dim) {
  const auto [variable, d] = owner_of(tensor, dim);
  return variable != nullptr ? ratio_of(*variable, d) : 1;
}

/// Positions of a tensor along a dimension.
std::int64_t extent(const TensorSource& tensor, const std::string& dim, const Dims& sizes) {
  const int window = window_number(tensor.windows, dim);
  const std::int64_t scale = scale_along(tensor, dim);
  if (window < 0) return tensor.selected.at(dim).size() * scale;
  const auto* steps = tensor.definition.offsets_along(dim);
  return sizes[static_cast<std::size_t>(window)] * scale *
         (steps ? static_cast<std::int64_t>(steps->size()) : 1);
}

class Layouter {
 public:
  Layouter(const TensorSource& tensor, const Dims& sizes)
      : tensor_(tensor),
        definition_(tensor.definition),
        sizes_(sizes),
        first_(first_stored()),
        first_dims_(first_ != nullptr ? kept_dims(*first_) : made_dims()) {}

  TensorLayout result() {
    check_ratios();
    order_dims();
    join_dims();
    check_coarsening();
    shape();
    place();
    return std::move(layout_);
  }

 private:
  Error failure(const std::string& why) const {
    return Error(ErrorCode::invalid_argument, definition_.path + ": " + why);
  }
  Error too_large() const { return failure("a batch of this tensor is larger than 2^63 bytes"); }

  void check_ratios() const {
    for (const TensorSource::Channels& each : tensor_.variables)
      for (std::size_t d = 0; d < each.variable->dims.size(); ++d) {
        const auto [first, at] = owner_of(tensor_, each.variable->dims[d]);
        if (ratio_of(*first, at) != ratio_of(*each.variable, d))
          throw failure(
              fmt::format("'{}' and '{}' have grids of different resolution along '{}'; "
                          "give them tensors of their own",
                          first->name, each.variable->name, each.variable->dims[d]));
      }
  }

  /// A variable's dimensions that are left after selection, in stored order.
  std::vector<std::string> kept_dims(const Variable& variable) const {
    std::vector<std::string> dims;
    for (const std::string& dim : variable.dims)
      if (!tensor_.selected.at(dim).drops_dim()) dims.push_back(dim);
    return dims;
  }

  bool is_stack(const std::string& dim) const {
    return definition_.stack && dim == *definition_.stack;
  }

  /// nullptr: all channels are made.
  const Variable* first_stored() const {
    for (const TensorSource::Channels& each : tensor_.variables)
      if (!each.made) return each.variable;
    return nullptr;
  }

  /// Dimensions of the made channels, in the order of the dataset's fields.
  std::vector<std::string> made_dims() const {
    std::vector<std::string> dims;
    for (const TensorSource::Channels& each : tensor_.variables)
      for (const std::string& dim : kept_dims(*each.variable))
        if (!contains(dims, dim)) dims.push_back(dim);
    return dims;
  }

  /// Made channels are fields of time and place, the same along those that their formula lacks.
  bool has_dim(const TensorSource::Channels& each, const std::string& dim) const {
    return contains(kept_dims(*each.variable), dim) ||
           (each.made && contains(tensor_.field_dims, dim));
  }
  /// Is a variable repeated along dimensions of the tensor that it lacks?
  bool repeats(const TensorSource::Channels& each) const {
    return definition_.broadcast || each.made;
  }

  /// Whether the dimension goes into the stack. Without "dims", those join that not all variables
  /// have, such as levels: latitude and longitude stay. A window's dimension never joins.
  bool is_joined(const std::string& dim) const {
    if (!definition_.stack) return false;
    if (definition_.dims) return !contains(*definition_.dims, dim);
    return window_number(tensor_.windows, dim) < 0 &&
           !std::all_of(tensor_.variables.begin(), tensor_.variables.end(),
                        [&](const TensorSource::Channels& each) { return has_dim(each, dim); });
  }

  /// Dimensions that the tensor can have: those of the first variable or, where the others are
  /// repeated, of any of them and of the windows.
  std::vector<std::string> possible_dims() const {
    std::vector<std::string> dims = first_dims_;
    const auto add = [&](const std::string& dim) {
      if (!contains(dims, dim)) dims.push_back(dim);
    };
    if (first_ == nullptr)
      for (const std::string& dim : tensor_.field_dims)
        if (!tensor_.selected.at(dim).drops_dim()) add(dim);
    if (!definition_.broadcast) return dims;
    for (const TensorSource::Channels& each : tensor_.variables)
      for (const std::string& dim : kept_dims(*each.variable)) add(dim);
    for (const WindowDim& window : tensor_.windows) add(window.name);
    return dims;
  }

  /// The tensor's own dimensions, by their stored names.
  void order_dims() {
    const std::string& first = (first_ != nullptr ? first_ : tensor_.variables[0].variable)->name;
    const std::vector<std::string> possible = possible_dims();
    if (definition_.dims) {
      dims_ = *definition_.dims;
      if (contains(dims_, "sample") && !contains(possible, "sample"))
        throw failure("\"dims\" leaves out \"sample\"");
      for (const std::string& dim : dims_)
        if (!is_stack(dim) && !contains(possible, dim))
          throw failure(definition_.broadcast
                            ? fmt::format("dims: '{}' is a dimension neither of its variables nor "
                                          "of \"window\"{}",
                                          dim, did_you_mean(dim, possible))
                            : fmt::format("dims: '{}' has no dimension '{}'{}", first, dim,
                                          did_you_mean(dim, possible)));
      if (definition_.stack && !contains(dims_, *definition_.stack))
        throw failure(fmt::format("dims: the stack '{}' is missing", *definition_.stack));
      if (!definition_.stack &&
          !std::all_of(first_dims_.begin(), first_dims_.end(),
                       [&](const std::string& dim) { return contains(dims_, dim); }))
        throw failure(
            fmt::format("dims: name every dimension of '{}': {}", first, join(first_dims_, ", ")));
    } else {
      if (definition_.stack) dims_.push_back(*definition_.stack);
      const auto add = [&](const std::vector<std::string>& dims) {
        for (const std::string& dim : dims)
          if (!is_joined(dim) && !contains(dims_, dim)) dims_.push_back(dim);
      };
      add(first_dims_);
      for (const TensorSource::Channels& each : tensor_.variables)
        if (definition_.broadcast) add(kept_dims(*each.variable));
    }
    if (definition_.stack && contains(possible, *definition_.stack) &&
        !is_joined(*definition_.stack))
      throw failure(fmt::format(
          "stack: '{}' is a dimension of {}", *definition_.stack,
          contains(first_dims_, *definition_.stack) ? fmt::format("'{}'", first) : "the tensor"));
  }

  /// Joined dimensions of each variable, in the first variable's order, and how many channels they
  /// make.
  void join_dims() {
    for (const TensorSource::Channels& each : tensor_.variables) {
      const Variable* const variable = each.variable;
      const std::vector<std::string> own = kept_dims(*variable);
      std::vector<std::string> mine;
      for (const std::string& dim : first_dims_)
        if (is_joined(dim) && contains(own, dim)) mine.push_back(dim);
      for (const std::string& dim : own)
        if (is_joined(dim) && !contains(mine, dim)) mine.push_back(dim);
      for (const std::string& dim : dims_)
        if (!is_stack(dim) && !contains(own, dim) && !repeats(each))
          throw failure(
              fmt::format("'{}' has no dimension '{}', which the tensor has; "
                          "\"broadcast\": true repeats it along such dimensions",
                          variable->name, dim));
      check_places(each, mine);
      std::int64_t count = 1;
      for (const std::string& dim : mine)
        if (__builtin_mul_overflow(count, extent(tensor_, dim, sizes_), &count)) throw too_large();
      layout_.joined.push_back(std::move(mine));
      channels_.push_back(count);
      if (__builtin_add_overflow(channel_count_, count, &channel_count_)) throw too_large();
    }
  }

  /// Its values along a dimension that the tensor lacks would all go to one place.
  void check_places(const TensorSource::Channels& each,
                    const std::vector<std::string>& mine) const {
    for (const std::string& dim : kept_dims(*each.variable)) {
      if (contains(dims_, dim) || contains(mine, dim) || extent(tensor_, dim, sizes_) == 1)
        continue;
      if (each.made)
        throw failure(
            fmt::format("'{}' is along '{}', which the tensor has not; \"broadcast\": true "
                        "repeats the others along it",
                        each.variable->name, dim));
      throw failure(
          fmt::format("'{}' has no dimension '{}', which '{}' has; \"broadcast\": true "
                      "repeats it along such dimensions",
                      first_->name, dim, each.variable->name));
    }
  }

  void check_coarsening() const {
    for (const CoarsenStep& step : definition_.coarsen) {
      const auto fail = [&](const std::string& why) {
        return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", step.path, why));
      };
      if (is_stack(step.dim) || !contains(dims_, step.dim))
        throw fail(fmt::format("the tensor has no dimension '{}' of variables{}", step.dim,
                               did_you_mean(step.dim, dims_)));
      const int window = window_number(tensor_.windows, step.dim);
      const std::int64_t size =
          window < 0 ? extent(tensor_, step.dim, sizes_)
                     : sizes_[static_cast<std::size_t>(window)] * scale_along(tensor_, step.dim);
      if (size % step.size != 0)
        throw fail(fmt::format("{} positions {} are not a whole number of blocks of {}", size,
                               window < 0 ? "selected" : "of a window", step.size));
    }
  }

  void shape() {
    TensorSpec& spec = layout_.spec;
    spec = {definition_.name, tensor_.type, {"sample"}, {tensor_.batch_size}};
    for (const std::string& dim : dims_) {
      const auto [owner, d] = owner_of(tensor_, dim);
      const std::string name = is_stack(dim)      ? dim
                               : owner != nullptr ? tensor_dim(*owner, d)
                                                  : tensor_dim(dim);
      if (contains(spec.dims, name))
        throw failure(fmt::format("two of its dimensions would be called '{}'", name));
      if (is_stack(dim)) spec.stack_axis = static_cast<int>(spec.dims.size());
      spec.dims.push_back(name);
      spec.shape.push_back(is_stack(dim) ? channel_count_
                                         : extent(tensor_, dim, sizes_) /
                                               coarse_along(definition_.coarsen, dim));
    }
    spec.coarsen = definition_.coarsen;
    const Dims sample_shape(std::span(spec.shape).subspan(1));
    try {
      strides_ = c_strides(sample_shape, tensor_.type.itemsize);
      c_strides(spec.shape, tensor_.type.itemsize);  // refuses unaddressable shapes
    } catch (const Error&) {
      throw too_large();
    }
    layout_.sample_bytes = element_count(sample_shape) * tensor_.type.itemsize;
  }

  /// Bytes in the tensor from one position along a dimension of its own to the next.
  std::int64_t stride_of(const std::string& dim) const {
    const auto it = std::find(dims_.begin(), dims_.end(), dim);
    return it == dims_.end() ? 0 : strides_[static_cast<std::size_t>(it - dims_.begin())];
  }

  void place() {
    std::int64_t channel = 0;
    for (std::size_t v = 0; v < tensor_.variables.size(); ++v) {
      const auto& [number, variable, made] = tensor_.variables[v];
      VariablePlacement placement{tensor_.number,
                                  number,
                                  definition_.stack ? channel * stride_of(*definition_.stack) : 0,
                                  {},
                                  {}};
      placement.made = made;
      for (const std::string& dim : variable->dims)
        placement.axes.push_back(axis(dim, layout_.joined[v]));
      for (std::size_t d = 0; d < variable->dims.size(); ++d)
        if (variable->join_along(d) != nullptr)
          placement.axes[d].selected = tensor_.joined.along(*variable, d);
      const std::vector<std::string> own = kept_dims(*variable);
      for (const std::string& dim : dims_)
        if (!is_stack(dim) && !contains(own, dim)) {
          try {
            placement.repeat_along(axis(dim, {}));
          } catch (const Error& error) {
            throw failure(fmt::format("'{}': {}", variable->name, error.why()));
          }
        }
      channel += channels_[v];
      if (!definition_.coarsen.empty()) {
        layout_.coarsened.push_back(std::move(placement));
        continue;
      }
      std::vector<VariablePlacement> all =
          tensor_.joined.by_offset(*variable, definition_.durations, placement);
      for (VariablePlacement& each : all) {
        each.is_first = &each == &all.front();
        if (!variable->is_concatenated()) {
          layout_.placements.push_back(std::move(each));
          continue;
        }
        for (VariablePlacement& part : tensor_.joined.in_parts(*variable, each))
          layout_.placements.push_back(std::move(part));
      }
    }
  }

  AxisPlacement axis(const std::string& dim, const std::vector<std::string>& joined) const {
    AxisPlacement axis;
    axis.selected = tensor_.selected.at(dim);
    axis.scale = scale_along(tensor_, dim);
    if (axis.scale > 1) axis.selected = Positions::range(0, axis.selected.size() * axis.scale);
    axis.coarse = coarse_along(definition_.coarsen, dim);
    axis.window = window_number(tensor_.windows, dim);
    if (axis.window >= 0) {
      axis.size = sizes_[static_cast<std::size_t>(axis.window)] * axis.scale;
      axis.wrap = tensor_.windows[static_cast<std::size_t>(axis.window)].wrap;
      if (const auto* steps = definition_.offsets_along(dim)) axis.offsets = *steps;
      axis.by_label = definition_.by_label_along(dim);
    }
    const auto in_stack = std::find(joined.begin(), joined.end(), dim);
    if (in_stack != joined.end()) {
      axis.stride = stride_of(*definition_.stack);
      for (auto later = in_stack + 1; later != joined.end(); ++later)
        axis.stride *= extent(tensor_, *later, sizes_);
    } else if (!axis.selected.drops_dim()) {
      axis.stride = stride_of(dim);
    }
    return axis;
  }

  const TensorSource& tensor_;
  const TensorDefinition& definition_;
  const Dims& sizes_;
  const Variable* const first_;                // that the store has; nullptr: none
  const std::vector<std::string> first_dims_;  // of this variable
  std::vector<std::string> dims_;
  std::vector<std::int64_t> channels_;  // that each variable makes
  std::int64_t channel_count_ = 0;
  Dims strides_;  // bytes, per dimension of the tensor's own
  TensorLayout layout_;
};

/// Steps of a window by their distance from its begin, other positions by their label.
std::vector<std::string> labels_along(const TensorSource& tensor, const std::string& dim,
                                      const Dims& sizes, const Dataset& dataset) {
  const std::int64_t count = extent(tensor, dim, sizes);
  const int window = window_number(tensor.windows, dim);
  const std::int64_t scale = scale_along(tensor, dim);
  const Variable* index = window < 0 && scale == 1 ? dataset.index_of(dim) : nullptr;
  const std::vector<std::int64_t>* steps = tensor.definition.offsets_along(dim);
  const OffsetList* durations = nullptr;
  for (const OffsetList& list : tensor.definition.durations)
    if (list.dim == dim) durations = &list;
  const Positions& selected = tensor.selected.at(dim);
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    if (index != nullptr) {
      // Lengths of time by their counts: names of channels stay the same.
      const Dataset::Index& all = dataset.index(dim);
      labels.push_back(all.values.type.kind == Kind::timedelta ? label_text(all.values, selected[i])
                                                               : label_text(all, selected[i]));
    } else if (durations != nullptr) {
      const std::int64_t size = sizes[static_cast<std::size_t>(window)] * scale;
      labels.push_back(duration_text(durations->durations[static_cast<std::size_t>(i / size)]));
      if (size > 1) labels.back() += fmt::format("+{}", i % size);
    } else if (window >= 0) {
      const std::int64_t size = sizes[static_cast<std::size_t>(window)] * scale;
      labels.push_back(std::to_string(
          (steps != nullptr ? (*steps)[static_cast<std::size_t>(i / size)] : 0) * scale +
          i % size));
    } else if (scale > 1) {
      labels.push_back(std::to_string(i));
    } else {
      labels.push_back(std::to_string(selected[i]));
    }
  }
  return labels;
}

}  // namespace

TensorLayout lay_out(const TensorSource& tensor, const Dims& sizes) {
  return Layouter(tensor, sizes).result();
}

std::vector<std::string> channel_names(const TensorSource& tensor, const TensorLayout& layout,
                                       const Dims& sizes, const Dataset& dataset) {
  constexpr std::int64_t kMaxNames = 1 << 16;
  if (!tensor.definition.stack ||
      layout.spec.shape[static_cast<std::size_t>(layout.spec.stack_axis)] > kMaxNames)
    return {};
  std::vector<std::string> names;
  for (std::size_t v = 0; v < tensor.variables.size(); ++v) {
    std::vector<std::string> of_variable{tensor.variables[v].variable->name};
    for (const std::string& dim : layout.joined[v]) {
      const std::vector<std::string> labels = labels_along(tensor, dim, sizes, dataset);
      std::vector<std::string> longer;
      for (const std::string& name : of_variable)
        for (const std::string& label : labels) longer.push_back(fmt::format("{}_{}", name, label));
      of_variable = std::move(longer);
    }
    std::move(of_variable.begin(), of_variable.end(), std::back_inserter(names));
  }
  return names;
}

std::string tensor_dim(const Variable& variable, std::size_t d) {
  return ratio_of(variable, d) > 1
             ? fmt::format("{}:{}", variable.join_along(d)->source(), variable.dims[d])
             : tensor_dim(variable.dims[d]);
}

std::string tensor_dim(const std::string& dim) { return dim == "sample" ? "stored_sample" : dim; }

bool fits_tensor(const Variable& variable) {
  const Kind kind = variable.cf.decoded.kind;
  return variable.array != nullptr && variable.cf.joined_characters == 0 && kind != Kind::unicode &&
         kind != Kind::bytes && kind != Kind::structured && kind != Kind::raw;
}

}  // namespace batchfs
