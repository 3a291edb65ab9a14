// `scale_offset`: decoded = stored / scale + offset, in the data type of the array. Integers must
// divide without remainder, and results must fit. Source: zarr-extensions, codec "scale_offset";
// zarr-python 3.4.

#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/codec/codecs.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

using Wide = __int128;

/// The whole number as T, or throws corrupt.
template <class T>
T fitting(Wide value) {
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
    throw Error(ErrorCode::corrupt, "scale_offset gives a value that does not fit the data type");
  return static_cast<T>(value);
}

template <class T>
T decode_integer(T stored, T scale, T offset) {
  Wide quotient = stored;
  if (std::is_signed_v<T> && scale == static_cast<T>(-1)) {
    quotient = -quotient;  // the lowest number has no quotient in T
  } else if (scale != 1) {
    if (stored % scale != 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the stored value {} is not a multiple of the scale {}",
                              printable_number(stored), printable_number(scale)));
    quotient = stored / scale;
  }
  return fitting<T>(quotient + offset);
}

/// float16 is computed in float32; each result is rounded, as numpy's are.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, _Float16>, float, T>;

template <class T>
T decode_float(T stored, T scale, T offset) {
  using C = Computed<T>;
  const auto quotient = static_cast<T>(static_cast<C>(stored) / static_cast<C>(scale));
  return static_cast<T>(static_cast<C>(quotient) + static_cast<C>(offset));
}

template <class T>
T encode_number(T value, T scale, T offset) {
  if constexpr (std::is_integral_v<T>) {
    Wide product = 0;
    if (__builtin_mul_overflow(Wide{value} - offset, Wide{scale}, &product))
      product = Wide{1} << 100;
    return fitting<T>(product);
  } else {
    using C = Computed<T>;
    const auto difference = static_cast<T>(static_cast<C>(value) - static_cast<C>(offset));
    return static_cast<T>(static_cast<C>(difference) * static_cast<C>(scale));
  }
}

class ScaleOffsetCodec final : public TypedCodec {
 public:
  ScaleOffsetCodec(const DataType& type, std::vector<std::byte> scale,
                   std::vector<std::byte> offset)
      : TypedCodec(type, type), scale_(std::move(scale)), offset_(std::move(offset)) {}
  std::string_view name() const override { return "scale_offset"; }
  bool in_place() const override { return true; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() > out.size() || in.size() % decoded_.itemsize != 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the chunk has {} bytes, {} were expected", in.size(), out.size()));
    if (in.data() != out.data() && !in.empty()) std::memcpy(out.data(), in.data(), in.size());
    transform(out.first(in.size()), [](auto stored, auto scale, auto offset) {
      if constexpr (std::is_integral_v<decltype(stored)>)
        return decode_integer(stored, scale, offset);
      else
        return decode_float(stored, scale, offset);
    });
    return in.size();
  }

  void encode(std::span<std::byte> elements) const {
    transform(elements, [](auto value, auto scale, auto offset) {
      return encode_number(value, scale, offset);
    });
  }

 private:
  template <class Function>
  void transform(std::span<std::byte> elements, Function&& function) const {
    with_number(decoded_, [&](auto zero) {
      using T = decltype(zero);
      const T scale = read_number<T>(scale_.data(), false);
      const T offset = read_number<T>(offset_.data(), false);
      for (std::size_t at = 0; at < elements.size(); at += sizeof(T))
        write_number<T>(elements.data() + at,
                        function(read_number<T>(elements.data() + at, false), scale, offset),
                        false);
    });
  }

  const std::vector<std::byte> scale_, offset_;  // one number each
};

}  // namespace

std::unique_ptr<Codec> make_scale_offset(const JsonRef& configuration, ChunkLayout& layout) {
  configuration.allow_only({"offset", "scale"});
  const DataType& type = layout.type;
  if (!type.is_integer() && type.kind != Kind::floating)
    throw configuration.error(
        fmt::format("scale_offset of the data type {} is not supported", type.name()),
        ErrorCode::not_supported);
  static const Json kOne = 1, kZero = 0;
  const auto given = configuration.find("scale");
  const JsonRef scale = given ? *given : JsonRef(kOne, "scale");
  const std::vector<std::byte> factor = parse_fill_value(type, scale);
  const bool is_zero = with_number(
      type, [&](auto zero) { return read_number<decltype(zero)>(factor.data(), false) == zero; });
  if (is_zero) throw scale.error("the scale is 0");
  auto codec = std::make_unique<ScaleOffsetCodec>(
      type, factor,
      parse_fill_value(type, configuration.find("offset").value_or(JsonRef(kZero, "offset"))));
  // Shards fill chunks that are not stored with the encoded fill value.
  if (layout.fill_value.size() == type.itemsize) {
    try {
      codec->encode(layout.fill_value);
    } catch (const Error& error) {
      throw configuration.error("the fill value cannot be encoded: " + error.why());
    }
  }
  return codec;
}

}  // namespace batchfs
