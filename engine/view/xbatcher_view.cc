// Views that produce the batches of xbatcher.BatchGenerator, with its shapes and dimension names.
// Source: xbatcher 0.4, generators.py.

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/reached_numbers.h"
#include "engine/view/rows/patch_rows.h"
#include "engine/view/sources_spec.h"
#include "engine/view/tensors/tensor_builder.h"
#include "engine/view/view_kinds.h"

namespace batchfs {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// The dimensions that are not input, in the order of their first appearance, as xarray has those of
/// ds[variables]; of a whole dataset also those that coordinates alone have.
std::vector<std::string> other_dims(const Dataset& dataset, const ViewSpec& spec,
                                    const ViewAxes& axes,
                                    const std::vector<const Variable*>& variables) {
  std::vector<std::string> others;
  const auto add_dims = [&](const Variable& variable) {
    for (const std::string& dim : variable.dims)
      if (!axes.along(dim).drops_dim() && !find_dim(spec.xbatcher->input_dims, dim) &&
          !contains(others, dim))
        others.push_back(dim);
  };
  if (spec.variables)
    for (const Variable* variable : variables) add_dims(*variable);
  else
    for (const Variable& variable : dataset.variables())
      if (source_prefix(spec.document, variable).empty()) add_dims(variable);
  return others;
}

/// The tensor of one variable.
class PatchTensor {
 public:
  PatchTensor(const ViewAxes& axes, const PatchRows& rows, const Variable& variable,
              const DataType& type)
      : axes_(axes), rows_(rows), x_(rows.spec()), variable_(variable) {
    spec_.name = variable.name;
    spec_.type = type;
    for (const std::string& dim : variable.dims)
      if (!axes.along(dim).drops_dim()) own_.push_back(dim);
    if (rows.stacks())
      stack();
    else
      keep();
  }

  /// Adds it, with the placement of the variable of this number.
  void add_to(TensorBuilder& builder, std::uint32_t number) const {
    Dims inner;
    for (const std::string& dim : order_) inner.push_back(rows_.extent(axes_, dim));
    const Dims strides = c_strides(inner, spec_.type.itemsize);
    VariablePlacement placement{
        static_cast<std::uint32_t>(builder.set().specs.size()), number, 0, {}, {}};
    for (const std::string& dim : variable_.dims)
      placement.axes.push_back(axis_along(dim, strides));
    for (const std::string& dim : order_)
      if (!contains(own_, dim)) placement.repeat_along(axis_along(dim, strides));
    TensorSpec spec = spec_;
    const std::int64_t patches = rows_.row_count(0);
    if (patches != 1) spec.shape[0] *= patches;  // "input_batch", or "sample" with it outermost
    builder.add_patches(std::move(spec), std::move(placement), spec_.shape,
                        element_count(inner) * spec_.type.itemsize);
  }

 private:
  /// xarray stacks the variables that have one of the stacked dimensions, and repeats them along the
  /// others. Concatenated patches all do.
  void stack() {
    if (contains(own_, "sample"))
      throw Error(ErrorCode::not_supported,
                  fmt::format("variables: '{}' has a dimension 'sample', as xbatcher calls what "
                              "it stacks; take \"window\" in place of \"xbatcher\"",
                              variable_.name));
    const bool has_stacked =
        x_.concat_input_dims || std::any_of(rows_.others().begin(), rows_.others().end(),
                                            [&](const auto& dim) { return contains(own_, dim); });
    std::int64_t stacked = 1;
    for (const std::string& dim : rows_.others()) {
      if (!has_stacked) break;
      order_.push_back(dim);
      if (__builtin_mul_overflow(stacked, rows_.extent(axes_, dim), &stacked))
        throw Error(ErrorCode::not_supported,
                    fmt::format("'{}' has more than 2^63 stacked samples", variable_.name));
    }
    if (has_stacked) add_dim("sample", stacked);
    for (const auto& [dim, size] : x_.input_dims) {
      if (!contains(own_, dim)) continue;
      order_.push_back(dim);
      add_dim(dim + suffix(), size);
    }
  }

  void keep() {
    if (x_.concat_input_dims) add_dim("input_batch", 1);
    for (const std::string& dim : own_) {
      order_.push_back(dim);
      add_dim(find_dim(x_.input_dims, dim) ? dim + suffix() : dim, rows_.extent(axes_, dim));
    }
  }

  void add_dim(const std::string& name, std::int64_t size) {
    spec_.dims.push_back(name);
    spec_.shape.push_back(size);
  }
  std::string suffix() const { return x_.concat_input_dims ? "_input" : ""; }

  AxisPlacement axis_along(const std::string& dim, const Dims& strides) const {
    AxisPlacement axis;
    axis.selected = axes_.along(dim);
    axis.window = rows_.sliced_number(dim);
    if (axis.window >= 0) axis.size = rows_.extent(axes_, dim);
    for (std::size_t d = 0; d < order_.size(); ++d)
      if (order_[d] == dim) axis.stride = strides[d];
    return axis;
  }

  const ViewAxes& axes_;
  const PatchRows& rows_;
  const XbatcherSpec& x_;
  const Variable& variable_;
  TensorSpec spec_;                 // of one patch
  std::vector<std::string> own_;    // dimensions of the variable that the selection leaves
  std::vector<std::string> order_;  // of the dimensions inside a patch
};

}  // namespace

std::shared_ptr<const View> make_xbatcher_view(std::shared_ptr<const Dataset> dataset,
                                               ViewSpec spec) {
  auto axes = std::make_shared<ViewAxes>(*dataset, spec.select);
  TensorBuilder builder(*dataset, spec, *axes);
  const std::vector<std::string> names =
      spec.variables ? *spec.variables : default_variables(*dataset, spec, {});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = fmt::format("variables[{}]", i);
    check_tensor_name(spec, names[i], path);
    builder.use_variable(names[i], path);
  }
  const std::vector<const Variable*> variables = builder.set().variables;
  auto rows = std::make_shared<const PatchRows>(
      *dataset, *spec.xbatcher, other_dims(*dataset, spec, *axes, variables), *axes);
  for (std::uint32_t v = 0; v < variables.size(); ++v) {
    if (variables[v]->part > 0) continue;
    builder.check_repeated_dims(*variables[v], "variables");
    PatchTensor(*axes, *rows, *variables[v], builder.result_type(*variables[v])).add_to(builder, v);
  }
  builder.check_normalized_names();
  auto tensors = std::make_shared<const TensorSet>(builder.take());
  auto coordinates = std::make_shared<const std::vector<ViewCoordinate>>(
      collect_coordinates(*dataset, *axes, *tensors));
  auto view = std::make_shared<const View>(
      ViewParts{std::move(dataset), std::make_shared<const ViewSpec>(std::move(spec)),
                std::move(axes), std::move(tensors), std::move(coordinates), std::move(rows)});
  check_numbers(*view);
  return view;
}

}  // namespace batchfs
