// `imagecodecs_floatpred`: TIFF's predictor 3. In each row the highest bytes of all floats come
// first, then the next ones; each byte is the difference to the one before. Sources: Adobe
// Photoshop TIFF Technical Note 3; imagecodecs.

#include <vector>

#include <fmt/format.h>

#include "engine/codec/codecs.h"
#include "engine/codec/tiff/configured_shape.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

class FloatPredictorCodec final : public Codec {
 public:
  /// Rows of `row` floats; a byte is added to the one `step` bytes on.
  FloatPredictorCodec(std::size_t itemsize, std::size_t row, std::size_t step, bool big_endian)
      : itemsize_(itemsize), row_(row), step_(step), big_endian_(big_endian) {}
  std::string_view name() const override { return "imagecodecs_floatpred"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }
  std::uint64_t scratch_bytes(std::uint64_t) const override { return step_; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::size_t bytes = row_ * itemsize_;
    if (in.size() > out.size() || in.size() % bytes != 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the chunk has {} bytes, {} were expected", in.size(), out.size()));
    std::vector<std::uint8_t> sums(step_);
    for (std::size_t at = 0; at < in.size(); at += bytes)
      decode_row(in.subspan(at, bytes), out.data() + at, sums);
    return in.size();
  }

 private:
  void decode_row(std::span<const std::byte> in, std::byte* out,
                  std::vector<std::uint8_t>& sums) const {
    std::fill(sums.begin(), sums.end(), std::uint8_t{0});
    std::size_t sum = 0, from = 0;
    for (std::size_t plane = 0; plane < itemsize_; ++plane) {
      std::byte* to = out + (big_endian_ ? plane : itemsize_ - 1 - plane);
      for (std::size_t i = 0; i < row_; ++i, to += itemsize_) {
        sums[sum] = static_cast<std::uint8_t>(sums[sum] + static_cast<std::uint8_t>(in[from++]));
        *to = static_cast<std::byte>(sums[sum]);
        if (++sum == step_) sum = 0;
      }
    }
  }

  const std::size_t itemsize_, row_, step_;
  const bool big_endian_;
};

}  // namespace

std::unique_ptr<Codec> make_float_predictor(const JsonRef& configuration, ChunkLayout& layout) {
  const JsonRef dtype = configuration.at("dtype");
  const DataType type = parse_numpy_type(dtype.string());
  if (type.kind != Kind::floating || type.itemsize != layout.type.itemsize)
    throw dtype.error(fmt::format("not the chunk's type, {}", layout.type.name()));
  const ConfiguredShape shape(configuration, layout, type.itemsize, true);
  const std::size_t rank = shape.shape.size();
  if (shape.axis + 2 < rank)
    throw configuration.at("axis").error("expected one of the last two dimensions");
  std::int64_t row = 1, samples = 1;
  for (std::size_t d = shape.axis; d < rank; ++d) row *= shape.shape[d];
  for (std::size_t d = shape.axis + 1; d < rank; ++d) samples *= shape.shape[d];
  std::int64_t step = 0;
  if (__builtin_mul_overflow(samples, shape.distance, &step) || step > row)
    throw configuration.at("dist").error("longer than a row");
  auto codec = std::make_unique<FloatPredictorCodec>(type.itemsize, static_cast<std::size_t>(row),
                                                     static_cast<std::size_t>(step),
                                                     layout.serialized && type.big_endian);
  // The stored bytes are in no order: the codec `bytes` must not swap them.
  if (!layout.serialized) layout.type = make_type(Kind::raw, type.itemsize);
  return codec;
}

}  // namespace batchfs
