#include <algorithm>
#include <cstring>
#include <memory>

#include "fs/formats/formats.h"
#include "fs/formats/png.h"
#include "fs/formats/preview.h"

namespace batchfs {

namespace {

/// The picture is the first file; the tensors it is of are assembled in the second, which no name
/// leads to.
class PngFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "png"; }

  BatchLayout layout(const View& view, std::int64_t batch) const override {
    const auto preview = std::make_shared<const Preview>(view, batch);
    const auto width = static_cast<std::uint32_t>(preview->width()),
               height = static_cast<std::uint32_t>(preview->height());
    constexpr std::uint64_t kAligned = 64;
    const std::vector<Dims> shapes = view.shapes(batch);
    BatchLayout layout;
    layout.files.resize(2);
    layout.files[0].size = png_size(width, height, preview->colours());
    std::uint64_t& end = layout.files[1].size;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const std::uint64_t bytes =
          static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
      layout.tensors.push_back({1, end});
      places.emplace_back(end, bytes);
      end += (bytes + kAligned - 1) / kAligned * kAligned;
    }
    // The view outlives the layouts of its batches.
    layout.finish = [preview, width, height, places, &view, batch](std::vector<MemoryFile>& files,
                                                                   std::int64_t epoch) {
      std::vector<std::span<const std::byte>> tensors;
      for (const auto& [offset, bytes] : places)
        tensors.push_back(bytes == 0 ? std::span<const std::byte>{}
                                     : files[1].span().subspan(offset, bytes));
      const Canvas canvas =
          preview->draw(tensors, sample_captions(view, epoch, batch, Preview::kMaxSamples));
      write_png({files[0].data(), files[0].size()}, width, height, preview_palette(),
                canvas.pixels(), preview->colours());
    };
    return layout;
  }
};

}  // namespace

const BatchFormat& png_format() {
  static const PngFormat format;
  return format;
}

}  // namespace batchfs
