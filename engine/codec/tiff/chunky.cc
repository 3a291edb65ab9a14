// virtual-tiff's `ChunkyCodec`: elements as bytes with the first dimension fastest, as TIFF's
// pixels of several samples lie. Source: virtual-tiff 0.5, codecs.py.

#include <fmt/format.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class ChunkyCodec final : public Codec {
 public:
  ChunkyCodec(Dims shape, DataType type) : shape_(std::move(shape)), type_(std::move(type)) {}
  std::string_view name() const override { return "ChunkyCodec"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const auto count = static_cast<std::size_t>(element_count(shape_));
    if (in.size() != count * type_.itemsize || out.size() < in.size())
      throw Error(ErrorCode::corrupt, fmt::format("the chunk has {} bytes, {} were expected",
                                                  in.size(), count * type_.itemsize));
    Dims strides(shape_.size());
    std::int64_t stride = type_.itemsize;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      strides[d] = stride;
      stride *= shape_[d];
    }
    copy_strided(shape_, type_.itemsize, in.data(), strides, out.data(),
                 c_strides(shape_, type_.itemsize));
    if (type_.big_endian) swap_bytes(type_, out.data(), count);
    return in.size();
  }

 private:
  const Dims shape_;
  const DataType type_;
};

}  // namespace

std::unique_ptr<Codec> make_chunky(const JsonRef& configuration, ChunkLayout& layout) {
  configuration.allow_only({"endian"});
  bool big = false;
  if (const auto endian = configuration.find("endian"); endian && !endian->is_null()) {
    const std::string text = endian->string();
    if (text != "big" && text != "little") throw endian->error("expected \"big\" or \"little\"");
    big = text == "big";
  }
  if (!layout.type.is_integer() && layout.type.kind != Kind::floating &&
      layout.type.kind != Kind::boolean)
    throw Error(ErrorCode::not_supported,
                layout.type.kind == Kind::raw
                    ? "a predictor of floats on pixels of several samples is not supported"
                    : fmt::format("the codec 'ChunkyCodec' on values of the type {} is not "
                                  "supported",
                                  layout.type.name()));
  layout.type.big_endian = big && layout.type.itemsize > 1;
  layout.serialized = true;
  return std::make_unique<ChunkyCodec>(layout.shape, layout.type);
}

}  // namespace batchfs
