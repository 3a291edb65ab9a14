#pragma once
// Batches by their plan alone, without a pipeline and without stored values.

#include <map>

#include <gtest/gtest.h>

#include "engine/view/plan_check.h"
#include "engine/view/view.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {

inline std::shared_ptr<const View> parse_view(const std::shared_ptr<const Dataset>& dataset,
                                              const std::string& json) {
  return View::parse(dataset, json, "given", "file.json");
}

/// The elements of each tensor of a batch, as the C-order number of the array element that each
/// comes from, plus `base` of its variable. Fails the test for a part that leaves its chunk, its
/// array or its tensor, and for an element that is written twice or never.
inline std::vector<std::vector<std::int64_t>> assembled(
    const View& view, std::int64_t epoch, std::int64_t batch,
    const std::map<std::string, std::int64_t>& base = {}) {
  const BatchPlan plan = view.plan(epoch, batch);
  check_plan(view, plan);
  std::vector<std::vector<std::int64_t>> tensors;
  for (const Dims& shape : plan.shapes)
    tensors.emplace_back(static_cast<std::size_t>(element_count(shape)), -1);
  for (const ChunkUse& use : plan.chunks) {
    const Variable& variable = *view.variables()[use.variable];
    const ChunkGrid& grid = variable.array->grid();
    const Dims chunk = grid.chunk(use.chunk);
    const auto first = base.find(variable.name);
    EXPECT_GT(use.part_count, 0u);
    for (std::uint32_t p = use.first_part; p < use.first_part + use.part_count; ++p) {
      const Part& part = plan.parts[p];
      std::vector<std::int64_t>& tensor = tensors[part.tensor];
      const auto itemsize = static_cast<std::int64_t>(view.tensors()[part.tensor].type.itemsize);
      Dims at(part.source.shape.size());
      for (std::int64_t n = 0; n < part.source.elements(); ++n) {
        std::int64_t element = 0, offset = part.offset, rest = n;
        for (std::size_t d = at.size(); d-- > 0;) {
          at[d] = rest % part.source.shape[d];
          rest /= part.source.shape[d];
        }
        for (std::size_t d = 0; d < at.size(); ++d) {
          const std::int64_t in_chunk = part.source.start[d] + at[d];
          EXPECT_LT(in_chunk, grid.chunk_shape()[d]);
          const std::int64_t in_array = chunk[d] * grid.chunk_shape()[d] + in_chunk;
          EXPECT_LT(in_array, grid.array_shape()[d]);
          element = element * grid.array_shape()[d] + in_array;
          offset += at[d] * part.strides[d];
        }
        EXPECT_EQ(offset % itemsize, 0);
        const Repeat repeat =
            part.repeat < 0 ? Repeat{} : plan.repeats.at(static_cast<std::size_t>(part.repeat));
        for (std::int64_t again = 0; again < element_count(repeat.counts); ++again) {
          std::int64_t place = offset, left = again;
          for (std::size_t d = 0; d < repeat.counts.size(); ++d) {
            place += left % repeat.counts[d] * repeat.strides[d];
            left /= repeat.counts[d];
          }
          const auto to = static_cast<std::size_t>(place / itemsize);
          if (place < 0 || to >= tensor.size()) {
            ADD_FAILURE() << "byte " << place << " is outside of the tensor";
            return tensors;
          }
          EXPECT_EQ(tensor[to], -1) << "written twice";
          tensor[to] = element + (first == base.end() ? 0 : first->second);
        }
      }
    }
  }
  for (const auto& tensor : tensors)
    EXPECT_EQ(std::count(tensor.begin(), tensor.end(), -1), 0)
        << "elements that nothing is written to";
  return tensors;
}

}  // namespace batchfs
