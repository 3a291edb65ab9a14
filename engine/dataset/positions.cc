#include "engine/dataset/positions.h"

#include <algorithm>
#include <utility>

namespace batchfs {

Positions Positions::range(std::int64_t start, std::int64_t count) {
  Positions positions;
  positions.start_ = start;
  positions.count_ = positions.held_ = count;
  return positions;
}

Positions Positions::list(std::vector<std::int64_t> positions) {
  const auto is_held = [](std::int64_t position) { return position != kNone; };
  const auto first = std::find_if(positions.begin(), positions.end(), is_held);
  const auto end = std::find_if(positions.rbegin(), positions.rend(), is_held).base();
  Positions result;
  result.count_ = static_cast<std::int64_t>(positions.size());
  if (first == positions.end()) {
    result.has_gaps_ = !positions.empty();
    return result;
  }
  result.before_ = first - positions.begin();
  result.held_ = end - first;
  result.has_gaps_ = result.held_ < result.count_ || std::find(first, end, kNone) != end;
  // Consecutive ones are a range: the plan then reads them in one piece.
  bool consecutive = true;
  for (auto each = first + 1; each < end; ++each)
    consecutive = consecutive && *each == *(each - 1) + 1;
  if (consecutive)
    result.start_ = *first;
  else
    result.list_ = std::make_shared<const std::vector<std::int64_t>>(first, end);
  return result;
}

Positions Positions::one(std::int64_t position) {
  Positions positions = position == kNone ? list({kNone}) : range(position, 1);
  positions.drops_dim_ = true;
  return positions;
}

Positions Positions::slice(std::int64_t first, std::int64_t count) const {
  if (list_ == nullptr) {
    const std::int64_t begin = std::max(first, before_),
                       end = std::min(first + count, before_ + held_);
    Positions result;
    result.count_ = count;
    if (end > begin) {
      result.before_ = begin - first;
      result.held_ = end - begin;
      result.start_ = start_ + begin - before_;
    }
    result.has_gaps_ = result.held_ < count;
    return result;
  }
  std::vector<std::int64_t> positions;
  for (std::int64_t i = first; i < first + count; ++i) positions.push_back((*this)[i]);
  return list(std::move(positions));
}

Positions Positions::within(std::int64_t before, std::int64_t count) const {
  Positions result = *this;
  result.before_ += before;
  result.count_ = count;
  result.has_gaps_ = has_gaps_ || count_ < count;
  return result;
}

std::int64_t Positions::size() const { return count_; }

std::int64_t Positions::operator[](std::int64_t i) const {
  i -= before_;
  if (i < 0 || i >= held_) return kNone;
  return list_ == nullptr ? start_ + i : (*list_)[static_cast<std::size_t>(i)];
}

}  // namespace batchfs
