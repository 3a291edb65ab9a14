#include "engine/view/plan/operand_memory.h"

#include <algorithm>

#include "engine/view/made/assembled_channel.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

std::vector<std::uint64_t> operand_sizes(const View& view, std::int64_t global_batch) {
  std::vector<std::uint64_t> sizes;
  if (view.tensor_set().combinations.empty()) return sizes;
  const std::vector<Dims> shapes = view.shapes(global_batch);
  for (const auto& combination : view.tensor_set().combinations) {
    const auto samples = static_cast<std::uint64_t>(shapes[combination->tensor()][0]);
    std::uint64_t& size = sizes.emplace_back();
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(combination->sample_bytes()), samples,
                               &size))
      size = UINT64_MAX;
  }
  return sizes;
}

std::uint64_t operand_memory(const View& view, std::int64_t global_batch) {
  std::uint64_t sum = 0;
  for (const std::uint64_t size : operand_sizes(view, global_batch))
    sum += std::min(size, UINT64_MAX - sum);
  return sum;
}

}  // namespace batchfs
