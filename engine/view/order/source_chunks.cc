#include "engine/view/order/source_chunks.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/sources_spec.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// A dimension of a variable.
struct Axis {
  const Variable* variable = nullptr;
  std::size_t d = 0;
  std::int64_t chunk = 0;
};

/// The one with the longest chunks along a window dimension; of none `variable` is null.
Axis longest_axis(const std::vector<const Variable*>& variables, const std::string& dim) {
  Axis longest;
  for (const Variable* variable : variables)
    for (std::size_t d = 0; d < variable->dims.size(); ++d)
      if (variable->dims[d] == dim)
        if (const std::int64_t chunk =
                std::max<std::int64_t>(1, variable->array->grid().chunk_shape()[d]);
            chunk > longest.chunk)
          longest = {variable, d, chunk};
  return longest;
}

std::vector<std::int64_t> numbers_along(const Axis& axis, std::int64_t length, JoinedAxes& joined) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(length), 0);
  if (axis.variable == nullptr) return numbers;
  const AxisJoin* join = axis.variable->join_along(axis.d);
  const std::int64_t ratio = join != nullptr ? join->ratio() : 1;
  const Positions& positions = joined.along(*axis.variable, axis.d);
  std::int64_t known = -1;
  for (std::int64_t p = 0; p < length; ++p) {
    const std::int64_t at = positions[p * ratio];
    const std::int64_t number = at == Positions::kNone ? known : at / axis.chunk;
    // Positions before the first that the source has belong to its group.
    if (known < 0 && number >= 0) std::fill_n(numbers.begin(), p, number);
    if (number >= 0) numbers[static_cast<std::size_t>(p)] = known = number;
  }
  return numbers;
}

}  // namespace

std::shared_ptr<const SourceChunks> source_chunks(const ViewSpec& spec, const Dataset& dataset,
                                                  const std::vector<const Variable*>& variables,
                                                  const std::map<std::string, Positions>& selected,
                                                  JoinedAxes& joined) {
  const std::string& by = spec.order.by;
  if (by.empty() || by == spec.document["sources"].begin().key()) return nullptr;
  std::vector<const Variable*> own;
  for (const Variable* variable : variables)
    if (source_name(spec.document, *variable) == by) own.push_back(variable);
  if (own.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("order.by: no tensor has a variable of '{}'", by));
  std::vector<std::vector<std::int64_t>> numbers;
  bool has_any = false;
  for (const WindowSpec& window : spec.window) {
    check_restricted_length(dataset, window.dim, "order.by");
    const Axis axis = longest_axis(own, window.dim);
    has_any = has_any || axis.variable != nullptr;
    numbers.push_back(numbers_along(axis, selected.at(window.dim).size(), joined));
  }
  if (!has_any)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("order.by: no variable of '{}' has a dimension of \"window\", so that "
                            "its chunks make no groups",
                            by));
  return std::make_shared<const SourceChunks>(std::move(numbers));
}

}  // namespace batchfs
