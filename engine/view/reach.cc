#include "engine/view/reach.h"

namespace batchfs {

MarkedCounts::MarkedCounts(const std::vector<bool>& marked, bool circle) : circle_(circle) {
  before_.reserve(marked.size() + 1);
  before_.push_back(0);
  for (const bool mark : marked) before_.push_back(before_.back() + (mark ? 1 : 0));
}

std::int64_t MarkedCounts::before(std::int64_t position) const {
  const auto length = static_cast<std::int64_t>(before_.size()) - 1;
  if (!circle_ || length == 0)
    return before_[static_cast<std::size_t>(std::clamp<std::int64_t>(position, 0, length))];
  std::int64_t turns = position / length, rest = position % length;
  if (rest < 0) rest += length, --turns;
  return turns * all() + before_[static_cast<std::size_t>(rest)];
}

std::int64_t MarkedCounts::count(std::int64_t begin, std::int64_t end) const {
  return end <= begin ? 0 : before(end) - before(begin);
}

}  // namespace batchfs
