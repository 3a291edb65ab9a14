// Each number is the difference to the one before along an axis: virtual-tiff's
// `HorizontalDeltaCodec` (TIFF's predictor 2) and `imagecodecs_delta`. Sums are of the elements'
// bits as unsigned integers, of floats too, and wrap. Sources: TIFF 6.0, section 14; imagecodecs.

#include <fmt/format.h>

#include "engine/codec/codecs.h"
#include "engine/codec/tiff/configured_shape.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

/// The elements as rows; in a row, an element is added to the one `step` elements on.
struct Rows {
  std::size_t length, step;  // elements; the length is a multiple of the step
};

template <class Word>
void sum_rows(std::span<std::byte> elements, const Rows& rows, bool big_endian) {
  const std::size_t row = rows.length * sizeof(Word), step = rows.step * sizeof(Word);
  for (std::size_t begin = 0; begin < elements.size(); begin += row)
    for (std::size_t at = begin + step; at < begin + row; at += sizeof(Word)) {
      std::byte* const p = elements.data() + at;
      const auto sum = static_cast<Word>(read_number<Word>(p, big_endian) +
                                         read_number<Word>(p - step, big_endian));
      write_number<Word>(p, sum, big_endian);
    }
}

class DifferencesCodec final : public Codec {
 public:
  DifferencesCodec(std::string_view name, const DataType& type, Rows rows)
      : name_(name), itemsize_(type.itemsize), big_endian_(type.big_endian), rows_(rows) {}
  std::string_view name() const override { return name_; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }
  bool in_place() const override { return true; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() > out.size() || in.size() % (rows_.length * itemsize_) != 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the chunk has {} bytes, {} were expected", in.size(), out.size()));
    if (in.data() != out.data() && !in.empty()) std::memcpy(out.data(), in.data(), in.size());
    const std::span<std::byte> elements = out.first(in.size());
    with_number(make_type(Kind::unsigned_int, itemsize_),
                [&](auto word) { sum_rows<decltype(word)>(elements, rows_, big_endian_); });
    return in.size();
  }

 private:
  const std::string_view name_;
  const std::uint32_t itemsize_;
  const bool big_endian_;
  const Rows rows_;
};

Rows rows_along(const Dims& shape, std::size_t axis) {
  Rows rows{1, 1};
  for (std::size_t d = axis + 1; d < shape.size(); ++d)
    rows.step *= static_cast<std::size_t>(shape[d]);
  rows.length = rows.step * (axis < shape.size() ? static_cast<std::size_t>(shape[axis]) : 1);
  return rows;
}

}  // namespace

std::unique_ptr<Codec> make_horizontal_delta(const JsonRef& configuration, ChunkLayout& layout) {
  const DataType& type = check_number(layout.type, configuration);
  const std::size_t rank = layout.shape.size();
  return std::make_unique<DifferencesCodec>("HorizontalDeltaCodec", type,
                                            rows_along(layout.shape, rank == 0 ? 0 : rank - 1));
}

std::unique_ptr<Codec> make_wrapped_delta(const JsonRef& configuration, ChunkLayout& layout) {
  // Without a type, imagecodecs sees the bytes of format 2, and the array of format 3.
  const DataType type =
      configured_type(configuration, "dtype",
                      layout.serialized ? make_type(Kind::unsigned_int, 1) : layout.type, layout);
  ConfiguredShape shape(configuration, layout, type.itemsize, !layout.serialized);
  if (shape.distance != 1)
    throw configuration.at("dist").error("distances other than 1 are not supported",
                                         ErrorCode::not_supported);
  return std::make_unique<DifferencesCodec>("imagecodecs_delta", type,
                                            rows_along(shape.shape, shape.axis));
}

}  // namespace batchfs
