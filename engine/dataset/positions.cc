#include "engine/dataset/positions.h"

#include <algorithm>
#include <utility>

namespace batchfs {

Positions Positions::range(std::int64_t start, std::int64_t count) {
  Positions positions;
  positions.start_ = start;
  positions.count_ = count;
  return positions;
}

Positions Positions::list(std::vector<std::int64_t> positions) {
  // Consecutive ones are a range: the plan then reads them in one piece.
  const bool has_gaps = std::find(positions.begin(), positions.end(), kNone) != positions.end();
  bool consecutive = !has_gaps;
  for (std::size_t i = 1; i < positions.size(); ++i)
    consecutive = consecutive && positions[i] == positions[i - 1] + 1;
  if (positions.empty()) return range(0, 0);
  if (consecutive) return range(positions.front(), static_cast<std::int64_t>(positions.size()));
  Positions result;
  result.count_ = static_cast<std::int64_t>(positions.size());
  result.list_ = std::make_shared<const std::vector<std::int64_t>>(std::move(positions));
  result.has_gaps_ = has_gaps;
  return result;
}

Positions Positions::one(std::int64_t position) {
  Positions positions = position == kNone ? list({kNone}) : range(position, 1);
  positions.drops_dim_ = true;
  return positions;
}

std::int64_t Positions::size() const { return count_; }

std::int64_t Positions::operator[](std::int64_t i) const {
  return list_ == nullptr ? start_ + i : (*list_)[static_cast<std::size_t>(i)];
}

}  // namespace batchfs
