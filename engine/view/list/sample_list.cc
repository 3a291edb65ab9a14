#include "engine/view/list/sample_list.h"

#include "engine/base/error.h"

namespace batchfs {

void ListColumn::add(std::int64_t value) {
  if (whole)
    integers.push_back(value);
  else
    floats.push_back(static_cast<double>(value));
}

void ListColumn::add(double value) {
  if (whole) {
    whole = false;
    floats.reserve(integers.capacity());
    for (const std::int64_t before : integers) floats.push_back(static_cast<double>(before));
    integers = {};
  }
  floats.push_back(value);
}

SampleList::SampleList(Dims lengths) : lengths_(std::move(lengths)), steps_(lengths_.size()) {
  std::int64_t step = 1;
  for (std::size_t w = lengths_.size(); w-- > 0;) {
    steps_[w] = step;
    if (__builtin_mul_overflow(step, lengths_[w], &step))
      throw Error(ErrorCode::not_supported,
                  "samples.list: the selection has more than 2^63 positions");
  }
}

const ListColumn* SampleList::column(const std::string& name) const {
  for (const ListColumn& column : columns_)
    if (column.name == name) return &column;
  return nullptr;
}

}  // namespace batchfs
