// numcodecs' `categorize` of strings of a fixed length: the code i + 1 stands for the label i, 0
// for the empty string. (StringArray reads those of any length.)

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/base/utf8.h"
#include "engine/codec/codecs.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

class CategorizeCodec final : public TypedCodec {
 public:
  CategorizeCodec(DataType decoded, DataType encoded, std::vector<std::u32string> labels)
      : TypedCodec(std::move(decoded), std::move(encoded)), labels_(std::move(labels)) {}
  std::string_view name() const override { return "categorize"; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::size_t size = decoded_.itemsize, count = in.size() / encoded_.itemsize;
    if (in.size() % encoded_.itemsize != 0 || count > out.size() / size)
      throw Error(ErrorCode::corrupt,
                  fmt::format("{} bytes are not the {} codes that were expected", in.size(),
                              out.size() / size));
    std::memset(out.data(), 0, count * size);
    with_number(encoded_, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < count; ++i) {
        const T code = read_number<T>(in.data() + i * encoded_.itemsize, encoded_.big_endian);
        // Compares like numpy: a code without a label is the empty string.
        if (!(code >= T{1}) || !(static_cast<double>(code) <= static_cast<double>(labels_.size())))
          continue;
        const std::u32string& label = labels_[static_cast<std::size_t>(code) - 1];
        std::memcpy(out.data() + i * size, label.data(), label.size() * sizeof label[0]);
      }
    });
    if (decoded_.big_endian) swap_bytes(decoded_, out.data(), count);
    return count * size;
  }

 private:
  const std::vector<std::u32string> labels_;  // cut to the type's length
};

}  // namespace

std::unique_ptr<Codec> make_categorize(const JsonRef& configuration, ChunkLayout& layout) {
  DataType decoded = layout.type;
  if (decoded.kind != Kind::unicode)
    throw Error(
        ErrorCode::not_supported,
        fmt::format("categorize on values of the type {} is not supported", decoded.name()));
  const JsonRef dtype = configuration.at("dtype");
  decoded = parse_v2_type(dtype, "");
  if (decoded.kind != Kind::unicode || decoded.itemsize != layout.type.itemsize)
    throw dtype.error("not the data type of the array");
  if (!layout.serialized) decoded.big_endian = false;
  const DataType encoded =
      configured_type(configuration, "astype", make_type(Kind::unsigned_int, 1), layout);
  if (!encoded.is_integer())
    throw configuration.at("astype").error("codes that are not whole numbers are not supported",
                                           ErrorCode::not_supported);
  std::vector<std::u32string> labels;
  for (const std::string& label : configuration.at("labels").strings()) {
    std::u32string points = code_points(label);
    points.resize(std::min<std::size_t>(points.size(), decoded.itemsize / sizeof points[0]));
    labels.push_back(std::move(points));
  }
  layout.type = encoded;
  return std::make_unique<CategorizeCodec>(decoded, encoded, std::move(labels));
}

}  // namespace batchfs
