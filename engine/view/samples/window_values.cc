#include "engine/view/samples/window_values.h"

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/dataset/joined/axis_join.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"

namespace batchfs {

namespace {

/// The values are read whole: 1 GiB of float64, where --memory allows it.
constexpr std::int64_t kMaxValues = INT64_C(1) << 27;

}  // namespace

LabelNumber WindowValues::at(std::int64_t place) const { return label_number(values, place); }

WindowValues read_window_values(const Dataset& dataset, const std::string& name,
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
  WindowValues result;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const std::string& dim = variable.dims[d];
    const int window = window_number(windows, dim);
    if (window < 0)
      throw fail(ErrorCode::invalid_argument,
                 fmt::format("'{}' has the dimension '{}', which is none of \"window\": {}", name,
                             dim, join(names, ", ")));
    for (const WindowValues::Axis& axis : result.axes)
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
    result.axes[d].step = count;
    if (__builtin_mul_overflow(count, shape[d], &count) || count > kMaxValues)
      throw fail(ErrorCode::not_supported,
                 fmt::format("'{}' has more than {}", name, counted(kMaxValues, "value")));
  }
  // They are given up before the first batch is requested.
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * type.itemsize;
  if (bytes > dataset.memory_limit() / 2)
    throw fail(ErrorCode::no_memory,
               fmt::format("'{}' takes {} in memory, which is more than half of --memory {}", name,
                           format_size(bytes), format_size(dataset.memory_limit())));
  try {
    result.values = read_variable(variable);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.why()), error.where());
  }
  return result;
}

}  // namespace batchfs
