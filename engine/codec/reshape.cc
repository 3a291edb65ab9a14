// `reshape`: the elements in their order, in another shape. Source: zarr-extensions, codec
// "reshape".

#include <cstring>

#include <fmt/format.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class ReshapeCodec final : public Codec {
 public:
  std::string_view name() const override { return "reshape"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }
  bool in_place() const override { return true; }
  bool is_identity() const override { return true; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() > out.size())
      throw Error(ErrorCode::corrupt,
                  fmt::format("the chunk has {} bytes, {} were expected", in.size(), out.size()));
    if (in.data() != out.data() && !in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return in.size();
  }
};

/// The product of lengths [begin, end), which are known to have a product.
std::int64_t product(const Dims& shape, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t d = begin; d < end; ++d) result *= shape[d];
  return result;
}

/// One encoded dimension that is made of decoded ones.
struct Joined {
  std::size_t dim;            // encoded
  std::size_t first, behind;  // decoded
  JsonRef json;
};

/// Decoded dimensions, which must ascend over all calls: `next` is the lowest one allowed.
Joined parse_joined(const JsonRef& list, std::size_t dim, std::size_t rank, std::size_t& next) {
  Joined joined{dim, next, next, list};
  bool is_first = true;
  for (const JsonRef& element : list.elements()) {
    const auto input =
        static_cast<std::size_t>(element.integer(0, static_cast<std::int64_t>(rank) - 1));
    if (input < next) throw element.error("the dimensions do not ascend");
    if (is_first) joined.first = input;
    is_first = false;
    joined.behind = next = input + 1;
  }
  return joined;
}

}  // namespace

std::unique_ptr<Codec> make_reshape(const JsonRef& configuration, ChunkLayout& layout) {
  configuration.allow_only({"shape"});
  const JsonRef given = configuration.at("shape");
  const std::vector<JsonRef> elements = given.elements();
  if (elements.size() > static_cast<std::size_t>(kMaxArrayDims))
    throw given.error(fmt::format("more than {} dimensions are not supported", kMaxArrayDims),
                      ErrorCode::not_supported);
  const Dims& decoded = layout.shape;
  const std::int64_t count = element_count(decoded);
  Dims encoded;
  std::vector<Joined> joins;
  std::optional<std::size_t> rest;  // the dimension of the length -1
  std::size_t next = 0;
  std::int64_t known = 1;
  for (std::size_t d = 0; d < elements.size(); ++d) {
    const JsonRef& element = elements[d];
    if (element.is_array()) {
      const Joined joined = parse_joined(element, d, decoded.size(), next);
      std::int64_t length = 1;
      for (const JsonRef& input : element.elements())
        length *= decoded[static_cast<std::size_t>(input.integer())];
      encoded.push_back(length);
      if (!element.elements().empty()) joins.push_back(joined);
    } else {
      const std::int64_t length = element.integer(-1);
      if (length == 0) throw element.error("a length from 1 on, -1 or a list was expected");
      if (length == -1 && rest) throw element.error("-1 is there twice");
      if (length == -1) rest = d;
      encoded.push_back(length == -1 ? 1 : length);
    }
    if (__builtin_mul_overflow(known, encoded.back(), &known) || known > count)
      throw given.error("more elements than a chunk has");
  }
  if (rest && count % known == 0) encoded[*rest] = count / known;
  if (product(encoded, 0, encoded.size()) != count)
    throw given.error(fmt::format("not the {} elements of a chunk", count));
  // The positions along the joined dimensions must be those along the encoded one.
  for (const Joined& joined : joins)
    if (product(encoded, 0, joined.dim) != product(decoded, 0, joined.first) ||
        product(encoded, joined.dim + 1, encoded.size()) !=
            product(decoded, joined.behind, decoded.size()))
      throw joined.json.error("these dimensions are not side by side in the chunk");
  layout.shape = encoded;
  return std::make_unique<ReshapeCodec>();
}

}  // namespace batchfs
