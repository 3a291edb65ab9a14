// numcodecs' delta: each element is the difference to the one before. Sums are of the decoded type,
// and wrap.

#include "engine/codec/codecs.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

class DeltaCodec final : public TypedCodec {
 public:
  using TypedCodec::TypedCodec;
  std::string_view name() const override { return "delta"; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    return with_number(decoded_, [&](auto zero) {
      using T = decltype(zero);
      T sum{};
      return convert_elements(in, encoded_, out, decoded_, [&](auto stored, auto type) {
        if constexpr (std::is_integral_v<T>) {
          using U = std::make_unsigned_t<T>;
          sum = static_cast<T>(
              static_cast<U>(static_cast<U>(sum) + static_cast<U>(cast_number<T>(stored))));
        } else {
          sum = static_cast<T>(sum + static_cast<T>(stored));
        }
        return static_cast<decltype(type)>(sum);
      });
    });
  }
};

}  // namespace

std::unique_ptr<Codec> make_delta(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType decoded = configured_type(configuration, "dtype", layout.type, layout);
  const DataType encoded = configured_type(configuration, "astype", decoded, layout);
  layout.type = encoded;
  return std::make_unique<DeltaCodec>(decoded, encoded);
}

}  // namespace batchfs
