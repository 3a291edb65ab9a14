#include "engine/scan/joined_statistics.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/dataset/joined/axis_join.h"

namespace batchfs {

void check_joined_statistics(const Variable& variable, const std::vector<std::string>& cut,
                             const std::vector<std::string>& per) {
  if (variable.part >= 0 &&
      std::count(per.begin(), per.end(), variable.dims[variable.concat_dim]) > 0)
    throw Error(ErrorCode::not_supported,
                fmt::format("no numbers for each '{}': '{}' is of several stores one behind the "
                            "other along it",
                            variable.dims[variable.concat_dim], variable.name));
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const AxisJoin* join = variable.join_along(d);
    const std::string& dim = variable.dims[d];
    if (join == nullptr) continue;
    if (std::count(cut.begin(), cut.end(), dim) > 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("'{}' is joined along '{}', which the view's split cuts: statistics "
                              "of its parts are not supported; take them of a view without "
                              "\"split\"",
                              variable.name, dim));
    if (join->ratio() > 1 && std::count(per.begin(), per.end(), dim) > 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("no numbers for each '{}': '{}' has {} positions for each of it", dim,
                              variable.name, join->ratio()));
  }
}

}  // namespace batchfs
