#pragma once
// The values of a made channel, in float64, for a run of cells at one time.

#include <cstdint>
#include <memory>

#include "engine/view/made/earth_coordinate.h"
#include "engine/view/made/made_spec.h"
#include "engine/view/made/time_labels.h"

namespace batchfs {

/// CellRun one after the other: where they lie in the coordinates, and the steps from one to the
/// next.
struct CellRun {
  std::int64_t count = 1;
  std::int64_t latitude = 0, latitude_step = 0;
  std::int64_t longitude = 0, longitude_step = 0;
};

/// Immutable, thread-safe.
class Formula {
 public:
  virtual ~Formula() = default;
  /// Writes `cells.count` values. `times` and `position` are not used by channels without time.
  virtual void evaluate(const TimeLabels* times, std::int64_t position, const CellRun& cells,
                        double* out) const = 0;
};

/// The coordinates are those that the kind needs; others may be null.
std::unique_ptr<const Formula> make_formula(
    const MadeSpec& spec, const std::shared_ptr<const EarthCoordinate>& latitudes,
    const std::shared_ptr<const EarthCoordinate>& longitudes);

}  // namespace batchfs
