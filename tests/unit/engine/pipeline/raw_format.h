#pragma once
// The simplest batch format: one file per tensor, nothing but its bytes.

#include "engine/pipeline/batch_format.h"

namespace batchfs {

class RawTestFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "raw"; }
  BatchLayout layout(const View& view, std::int64_t batch) const override {
    BatchLayout layout;
    const auto shapes = view.shapes(batch);
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      layout.tensors.push_back({static_cast<std::uint32_t>(t), 0});
      layout.files.push_back(
          {static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize,
           {}});
    }
    return layout;
  }
};

}  // namespace batchfs
