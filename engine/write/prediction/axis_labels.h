#pragma once
// Labels along a dimension of an output, and how the CF conventions store them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/json.h"
#include "engine/write/prediction/predicted_array.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

/// One-dimensional labels as users see them: times are datetime64 or timedelta64. Immutable.
struct AxisLabels {
  DataType type;                  // of fixed size
  std::vector<std::byte> values;  // native byte order
  Json attributes = Json::object();

  std::int64_t size() const { return static_cast<std::int64_t>(values.size() / type.itemsize); }
  /// The labels at these positions. Precondition: each is below size().
  AxisLabels at(std::span<const std::int64_t> positions) const;
  /// Times become whole numbers since the first one, in the largest unit that all of them are
  /// multiples of; characters become texts.
  CoordinateLabels stored() const;
};

}  // namespace batchfs
