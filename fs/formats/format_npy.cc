#include "fs/formats/formats.h"
#include "fs/formats/npy.h"

namespace batchfs {

namespace {

class NpyFormat final : public BatchFormat {
 public:
  explicit NpyFormat(bool header) : header_(header) {}

  std::string_view name() const override { return header_ ? "npy" : "raw"; }

  BatchLayout layout(const View& view, std::int64_t batch) const override {
    BatchLayout layout;
    const std::vector<Dims> shapes = view.shapes(batch);
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const DataType& type = view.tensors()[t].type;
      BatchLayout::File file;
      std::uint64_t offset = 0;
      if (header_) {
        file.literals.push_back({0, npy_header(type, shapes[t])});
        offset = file.literals.front().bytes.size();
      }
      file.size = offset + static_cast<std::uint64_t>(element_count(shapes[t])) * type.itemsize;
      layout.tensors.push_back({static_cast<std::uint32_t>(layout.files.size()), offset});
      layout.files.push_back(std::move(file));
    }
    return layout;
  }

 private:
  const bool header_;
};

}  // namespace

const BatchFormat& npy_format() {
  static const NpyFormat format(true);
  return format;
}

const BatchFormat& raw_format() {
  static const NpyFormat format(false);
  return format;
}

}  // namespace batchfs
