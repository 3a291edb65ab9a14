#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

const Variable& TensorSet::whole_variable(std::uint32_t number) const {
  const auto found = whole.find(number);
  return found != whole.end() ? *found->second : *variables[number];
}

std::vector<Dims> TensorSet::shapes(std::int64_t rows) const {
  std::vector<Dims> shapes = row_shapes;
  if (rows != 1)
    for (Dims& shape : shapes) shape[0] *= rows;
  return shapes;
}

TensorSource TensorSet::source(std::uint32_t tensor, const ViewAxes& axes,
                               std::int64_t batch_size) const {
  return {tensor,       definitions[tensor], specs[tensor].type, channels[tensor], axes.selected,
          axes.windows, batch_size,          axes.joined,        made.field_dims()};
}

}  // namespace batchfs
