// `transpose`: the dimensions in another order. Source: v3 core, codec "transpose"; "C" and "F" are
// its orders before the final specification.

#include <algorithm>
#include <numeric>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class TransposeCodec final : public Codec {
 public:
  TransposeCodec(Dims decoded_shape, std::size_t itemsize, const std::vector<std::size_t>& order)
      : shape_(decoded_shape), itemsize_(itemsize) {
    // Encoded dimension i is decoded dimension order[i].
    Dims encoded_shape;
    for (std::size_t d : order) encoded_shape.push_back(decoded_shape[d]);
    const Dims encoded = c_strides(encoded_shape, static_cast<std::int64_t>(itemsize));
    encoded_strides_.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) encoded_strides_[order[i]] = encoded[i];
  }
  std::string_view name() const override { return "transpose"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::uint64_t bytes = static_cast<std::uint64_t>(element_count(shape_)) * itemsize_;
    if (in.size() != bytes || out.size() < bytes)
      throw Error(ErrorCode::corrupt, "the chunk has " + std::to_string(in.size()) + " bytes, " +
                                          std::to_string(bytes) + " were expected");
    copy_strided(shape_, itemsize_, in.data(), encoded_strides_, out.data(),
                 c_strides(shape_, static_cast<std::int64_t>(itemsize_)));
    return in.size();
  }

 private:
  const Dims shape_;
  const std::size_t itemsize_;
  Dims encoded_strides_;  // per decoded dimension
};

}  // namespace

std::unique_ptr<Codec> make_transpose(const JsonRef& configuration, ChunkLayout& layout) {
  const std::size_t rank = layout.shape.size();
  const JsonRef order = configuration.at("order");
  std::vector<std::size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  if (order.is_string()) {
    const std::string text = order.string();
    if (text == "F")
      std::reverse(axes.begin(), axes.end());
    else if (text != "C")
      throw order.error("expected a permutation, \"C\" or \"F\"");
  } else {
    const std::vector<JsonRef> elements = order.elements();
    std::vector<bool> seen(rank, false);
    if (elements.size() != rank) throw order.error("expected one entry per dimension");
    for (std::size_t i = 0; i < rank; ++i) {
      axes[i] =
          static_cast<std::size_t>(elements[i].integer(0, static_cast<std::int64_t>(rank) - 1));
      if (seen[axes[i]]) throw order.error("not a permutation");
      seen[axes[i]] = true;
    }
  }
  auto codec = std::make_unique<TransposeCodec>(layout.shape, layout.type.itemsize, axes);
  Dims encoded;
  for (std::size_t axis : axes) encoded.push_back(layout.shape[axis]);
  layout.shape = encoded;
  return codec;
}

}  // namespace batchfs
