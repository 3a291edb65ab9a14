#include "engine/scan/joined_statistics.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/dataset/joined/axis_join.h"

namespace batchfs {

void check_joined_statistics(const Variable& variable, const std::vector<std::string>& cut) {
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const std::string& dim = variable.dims[d];
    if (variable.join_along(d) != nullptr && std::count(cut.begin(), cut.end(), dim) > 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("'{}' is joined along '{}', which the view's split cuts: statistics "
                              "of its parts are not supported; take them of a view without "
                              "\"split\"",
                              variable.name, dim));
  }
}

std::string no_numbers_per(const Variable& variable, const std::string& dim) {
  if (variable.part >= 0 && variable.dims[variable.concat_dim] == dim)
    return fmt::format("'{}' is of several stores one behind the other along it", variable.name);
  for (std::size_t d = 0; d < variable.dims.size(); ++d)
    if (const AxisJoin* join = variable.join_along(d);
        join != nullptr && variable.dims[d] == dim && join->ratio() > 1)
      return fmt::format("'{}' has {} positions for each of it", variable.name, join->ratio());
  return "";
}

}  // namespace batchfs
