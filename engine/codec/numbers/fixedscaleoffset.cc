// numcodecs' fixedscaleoffset: decoded = stored / scale + offset. Integers go by way of float64,
// floats keep their own precision, as numpy's arithmetic with a Python float does.

#include "engine/codec/codecs.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

class FixedScaleOffsetCodec final : public TypedCodec {
 public:
  FixedScaleOffsetCodec(DataType decoded, DataType encoded, double scale, double offset)
      : TypedCodec(std::move(decoded), std::move(encoded)), scale_(scale), offset_(offset) {}
  std::string_view name() const override { return "fixedscaleoffset"; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    return convert_elements(in, encoded_, out, decoded_, [this](auto stored, auto type) {
      using S = decltype(stored);
      using T = decltype(type);
      if constexpr (std::is_same_v<S, float>) {
        const float scaled = stored / static_cast<float>(scale_);
        return cast_number<T>(scaled + static_cast<float>(offset_));
      } else if constexpr (std::is_same_v<S, _Float16>) {
        const auto scaled = static_cast<_Float16>(
            static_cast<float>(stored) / static_cast<float>(static_cast<_Float16>(scale_)));
        return cast_number<T>(static_cast<_Float16>(
            static_cast<float>(scaled) + static_cast<float>(static_cast<_Float16>(offset_))));
      } else {
        const double scaled = static_cast<double>(stored) / scale_;
        return cast_number<T>(scaled + offset_);
      }
    });
  }

 private:
  const double scale_, offset_;
};

}  // namespace

std::unique_ptr<Codec> make_fixedscaleoffset(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType decoded = configured_type(configuration, "dtype", layout.type, layout);
  const DataType encoded = configured_type(configuration, "astype", decoded, layout);
  const double scale = configuration.at("scale").number();
  if (scale == 0) throw configuration.at("scale").error("the scale is 0");
  layout.type = encoded;
  return std::make_unique<FixedScaleOffsetCodec>(decoded, encoded, scale,
                                                 configuration.at("offset").number());
}

}  // namespace batchfs
