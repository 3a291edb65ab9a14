// numcodecs' astype, quantize and bitround: whatever they do to values when writing, reading is a
// cast.

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
    const bool to_boolean = decoded_.kind == Kind::boolean;
    return convert_elements(in, encoded_, out, decoded_, [to_boolean](auto stored, auto type) {
      using T = decltype(type);
      return to_boolean ? static_cast<T>(stored != decltype(stored){}) : cast_number<T>(stored);
    });
  }

 private:
  const std::string_view name_;
};

}  // namespace

std::unique_ptr<Codec> make_astype(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType decoded = configured_type(configuration, "decode_dtype", layout.type, layout);
  const DataType encoded = configured_type(configuration, "encode_dtype", decoded, layout);
  layout.type = encoded;
  return std::make_unique<CastCodec>("astype", decoded, encoded);
}

std::unique_ptr<Codec> make_quantize(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType decoded = configured_type(configuration, "dtype", layout.type, layout);
  const DataType encoded = configured_type(configuration, "astype", decoded, layout);
  layout.type = encoded;
  return std::make_unique<CastCodec>("quantize", decoded, encoded);
}

std::unique_ptr<Codec> make_bitround(const JsonRef& configuration, ChunkLayout& layout) {
  check_number(layout.type, configuration);
  return std::make_unique<CastCodec>("bitround", layout.type, layout.type);
}

}  // namespace batchfs
