#include "gpu/handoff/packed_format.h"

#include "gpu/handoff/batch_windows.h"

namespace batchfs::handoff {

namespace {

constexpr std::uint64_t kPage = 4096;

class PackedFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "packed"; }
  bool reusable() const override { return true; }

  BatchLayout layout(const View& view, std::int64_t batch) const override {
    BatchLayout layout;
    const std::vector<Dims> shapes = view.shapes(batch);
    std::uint64_t end = 0;
    /// Zeros for the gaps: bytes of an earlier batch must not reach the reader.
    std::vector<BatchLayout::Literal> gaps;
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const std::uint64_t offset = (end + kPage - 1) / kPage * kPage;
      if (offset > end) gaps.push_back({end, std::string(offset - end, '\0')});
      layout.tensors.push_back({0, offset});
      end = offset +
            static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
    }
    layout.files.push_back({end, std::move(gaps)});
    if (const std::uint64_t size = windows_file_size(view, batch); size > 0) {
      layout.files.push_back({size, {}});
      layout.finish = [&view, batch](std::vector<MemoryFile>& files, std::int64_t epoch) {
        write_windows(view, epoch, batch, files[1].data());
      };
    }
    return layout;
  }
};

}  // namespace

const BatchFormat& packed_format() {
  static const PackedFormat format;
  return format;
}

}  // namespace batchfs::handoff
