#include "engine/view/samples/window_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/dataset/joined/axis_join.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// 1 GiB of float64.
constexpr std::int64_t kMaxValues = INT64_C(1) << 27;

struct ReadableVariable {
  const Variable& variable;
  std::vector<WindowVariable::Axis> axes;
  std::int64_t count = 1;  // of values
};

ReadableVariable find_variable(const Dataset& dataset, const std::string& name,
                               const std::string& path, const std::vector<WindowDim>& windows,
                               const std::map<std::string, Positions>& selected) {
  const auto fail = [&](ErrorCode code, const std::string& why) {
    return Error(code, fmt::format("{}: {}", path, why));
  };
  const Variable* found = nullptr;
  try {
    found = &dataset.variable(name);
  } catch (const Error& error) {
    throw fail(error.code(), error.why());
  }
  const Variable& variable = *found;
  std::vector<std::string> names;
  for (const WindowDim& window : windows) names.push_back(window.name);
  ReadableVariable result{variable, {}};
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const std::string& dim = variable.dims[d];
    const int window = window_number(windows, dim);
    if (window < 0)
      throw fail(ErrorCode::invalid_argument,
                 fmt::format("'{}' has the dimension '{}', which is none of \"window\": {}", name,
                             dim, join(names, ", ")));
    for (const WindowVariable::Axis& axis : result.axes)
      if (axis.window == static_cast<std::size_t>(window))
        throw fail(ErrorCode::invalid_argument,
                   fmt::format("'{}' has the dimension '{}' twice", name, dim));
    const AxisJoin* join = variable.join_along(d);
    const Positions& all = selected.at(dim);
    if (join != nullptr && join->ratio() > 1)
      throw fail(ErrorCode::not_supported,
                 fmt::format("'{}' has {} positions for each of '{}'", name, join->ratio(), dim));
    result.axes.push_back({static_cast<std::size_t>(window),
                           join == nullptr ? all : composed(join->positions(), all), 1});
    if (result.axes.back().selected.has_gaps())
      throw fail(ErrorCode::invalid_argument,
                 fmt::format("'{}' lacks labels of '{}'; select those that it has", name, dim));
  }
  if (variable.dims.empty())
    throw fail(ErrorCode::invalid_argument,
               fmt::format("'{}' has no dimension; it needs one of \"window\": {}", name,
                           join(names, ", ")));
  const DataType& type = variable.cf.decoded;
  if (variable.array == nullptr ||
      !(type.is_float() || type.is_integer() || type.kind == Kind::boolean))
    throw fail(ErrorCode::invalid_argument,
               fmt::format("'{}' is {}; only numbers and booleans will do", name,
                           variable.is_readable() ? type.name() : variable.unsupported));
  const Dims shape = variable.own_shape();
  for (std::size_t d = result.axes.size(); d-- > 0;) {
    result.axes[d].step = result.count;
    if (__builtin_mul_overflow(result.count, shape[d], &result.count) || result.count > kMaxValues)
      throw fail(ErrorCode::not_supported,
                 fmt::format("'{}' has more than {}", name, counted(kMaxValues, "value")));
  }
  return result;
}

/// Runs `read`, whose errors get `path` in front.
template <class Read>
auto at_path(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.why()), error.where());
  }
}

/// Bytes of one value while it is read: stored and decoded.
std::uint64_t value_size(const Variable& variable) {
  const std::uint64_t stored =
      variable.cf.is_identity() || variable.array == nullptr ? 0 : variable.array->type().itemsize;
  return variable.cf.decoded.itemsize + stored;
}

/// Positions of a row of chunks along the first dimension, all where one part cannot be read.
std::int64_t rows_of(const Variable& variable) {
  if (!is_read_in_parts(variable)) return std::max<std::int64_t>(variable.own_shape()[0], 1);
  return std::max<std::int64_t>(variable.array->grid().chunk_shape()[0], 1);
}

}  // namespace

LabelNumber WindowValues::at(std::int64_t place) const { return label_number(values, place); }

WindowValues read_window_values(const Dataset& dataset, const std::string& name,
                                const std::string& path, const std::vector<WindowDim>& windows,
                                const std::map<std::string, Positions>& selected) {
  ReadableVariable found = find_variable(dataset, name, path, windows, selected);
  // They are dropped before the first batch is requested.
  check_list(dataset, static_cast<std::uint64_t>(found.count) * value_size(found.variable), path,
             fmt::format("the values of '{}'", name));
  WindowValues result;
  result.axes = std::move(found.axes);
  result.values = at_path(path, [&] { return read_variable(found.variable); });
  return result;
}

WindowMarks read_window_marks(const Dataset& dataset, const std::string& name,
                              const std::string& path, const std::vector<WindowDim>& windows,
                              const std::map<std::string, Positions>& selected,
                              const std::function<bool(LabelNumber)>& is_marked) {
  ReadableVariable found = find_variable(dataset, name, path, windows, selected);
  const Variable& variable = found.variable;
  const std::int64_t size = variable.own_shape()[0], rows = std::min(rows_of(variable), size);
  const std::int64_t inner = size == 0 ? 0 : found.count / size;
  check_list(dataset,
             static_cast<std::uint64_t>(found.count) / 8 +
                 static_cast<std::uint64_t>(rows * inner) * value_size(variable),
             path, fmt::format("the values of '{}' in a row of its chunks", name));
  WindowMarks result;
  result.axes = std::move(found.axes);
  result.marked.reserve(static_cast<std::size_t>(found.count));
  for (std::int64_t first = 0; first < size; first += rows) {
    const std::int64_t count = std::min(rows, size - first);
    const NdArray values = at_path(path, [&] {
      return is_read_in_parts(variable) ? read_part(variable, first, count)
                                        : read_variable(variable);
    });
    for (std::int64_t i = 0; i < count * inner; ++i)
      result.marked.push_back(is_marked(label_number(values, i)));
  }
  return result;
}

}  // namespace batchfs
