// numcodecs' astype, quantize and bitround: whatever they do to values when writing, reading is a cast.

#include "engine/codec/codecs.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

class CastCodec final : public TypedCodec {
 public:
  CastCodec(std::string_view name, DataType decoded, DataType encoded)
      : TypedCodec(std::move(decoded), std::move(encoded)), name_(name) {}
  std::string_view name() const override { return name_; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    return convert_elements(in, encoded_, out, decoded_,
                            [](auto stored, auto type) { return cast_number<decltype(type)>(stored); });
  }

 private:
  const std::string_view name_;
};

}  // namespace

std::unique_ptr<Codec> make_astype(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType decoded = configured_type(configuration, "decode_dtype", layout.type);
  const DataType encoded = configured_type(configuration, "encode_dtype", decoded);
  layout.type = encoded;
  return std::make_unique<CastCodec>("astype", decoded, encoded);
}

std::unique_ptr<Codec> make_quantize(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType decoded = configured_type(configuration, "dtype", layout.type);
  const DataType encoded = configured_type(configuration, "astype", decoded);
  layout.type = encoded;
  return std::make_unique<CastCodec>("quantize", decoded, encoded);
}

std::unique_ptr<Codec> make_bitround(const JsonRef&, ChunkLayout& layout) {
  return std::make_unique<CastCodec>("bitround", layout.type, layout.type);
}

}  // namespace batchfs
