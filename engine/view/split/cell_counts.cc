#include "engine/view/split/cell_counts.h"

namespace batchfs {

CellCounts::CellCounts(const std::vector<std::int64_t>& shape, const std::vector<bool>& marked)
    : strides_(shape.size(), 1) {
  const std::size_t dims = shape.size();
  for (std::size_t d = dims; d-- > 1;)
    strides_[d - 1] = strides_[d] * static_cast<std::size_t>(shape[d] + 1);
  before_.resize(dims == 0 ? 1 : strides_[0] * static_cast<std::size_t>(shape[0] + 1));
  std::vector<std::int64_t> at(dims);
  for (std::size_t cell = 0; cell < marked.size(); ++cell) {
    std::size_t corner = 0;
    for (std::size_t d = 0; d < dims; ++d)
      corner += static_cast<std::size_t>(at[d] + 1) * strides_[d];
    before_[corner] = marked[cell] ? 1 : 0;
    for (std::size_t d = dims; d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
  // Sums along one dimension after the other.
  for (std::size_t d = 0; d < dims; ++d)
    for (std::size_t corner = strides_[d]; corner < before_.size(); ++corner)
      if (corner / strides_[d] % static_cast<std::size_t>(shape[d] + 1) != 0)
        before_[corner] += before_[corner - strides_[d]];
}

std::int64_t CellCounts::count(const std::vector<CellSpan>& box) const {
  std::int64_t sum = 0;
  for (std::size_t choice = 0; choice < std::size_t{1} << box.size(); ++choice) {
    std::size_t corner = 0;
    bool negative = false;
    for (std::size_t d = 0; d < box.size(); ++d) {
      const bool first = (choice >> d & 1) != 0;
      negative ^= first;
      corner += static_cast<std::size_t>(first ? box[d].first : box[d].end) * strides_[d];
    }
    sum += negative ? -static_cast<std::int64_t>(before_[corner])
                    : static_cast<std::int64_t>(before_[corner]);
  }
  return sum;
}

}  // namespace batchfs
