#pragma once
// "coarsen" of a tensor: {"latitude": 2, "longitude": 2, "time": {"size": 6, "how": "sum"}}.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

enum class CoarsenMethod : std::uint8_t { mean, sum, min, max };

std::string_view coarsen_method_name(CoarsenMethod method);

/// Positions along one dimension that become one.
struct CoarsenStep {
  std::string dim;
  std::int64_t size = 1;
  CoarsenMethod how = CoarsenMethod::mean;
  std::string path;  // in the view's file, for messages

  /// The same wherever it is written?
  friend bool operator==(const CoarsenStep& a, const CoarsenStep& b) {
    return a.dim == b.dim && a.size == b.size && a.how == b.how;
  }
};

/// In the file's order. Throws invalid_argument with the JSON path.
std::vector<CoarsenStep> parse_coarsen(const JsonRef& json);

/// Positions that become one along a dimension; 1 where it is not coarsened.
std::int64_t coarse_along(const std::vector<CoarsenStep>& steps, const std::string& dim);

/// The steps as a view writes them, with every default filled in.
Json coarsen_json(const std::vector<CoarsenStep>& steps);

}  // namespace batchfs
