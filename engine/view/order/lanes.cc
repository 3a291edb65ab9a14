#include "engine/view/order/lanes.h"

namespace batchfs {

std::int64_t position_without_lanes(std::int64_t i, std::int64_t samples, std::int64_t batch_size,
                                    std::int64_t lanes) {
  const std::int64_t per_lane = samples / batch_size / lanes;
  const std::int64_t batch = i / batch_size;
  if (lanes == 1 || batch >= lanes * per_lane) return i;
  return (batch % lanes * per_lane + batch / lanes) * batch_size + i % batch_size;
}

}  // namespace batchfs
