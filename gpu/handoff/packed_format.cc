#include "gpu/handoff/packed_format.h"

namespace batchfs::handoff {

namespace {

constexpr std::uint64_t kPage = 4096;

class PackedFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "packed"; }

  BatchLayout layout(const View& view, std::int64_t batch) const override {
    BatchLayout layout;
    const std::vector<Dims> shapes = view.shapes(batch);
    std::uint64_t end = 0;
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const std::uint64_t offset = (end + kPage - 1) / kPage * kPage;
      layout.tensors.push_back({0, offset});
      end = offset + static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
    }
    layout.files.push_back({end, {}});
    return layout;
  }
};

}  // namespace

const BatchFormat& packed_format() {
  static const PackedFormat format;
  return format;
}

}  // namespace batchfs::handoff
