// numcodecs' shuffle: byte k of every element together. A tail shorter than an element is left as
// it is.

#include <cstring>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class ShuffleCodec final : public Codec {
 public:
  explicit ShuffleCodec(std::size_t itemsize) : itemsize_(itemsize) {}
  std::string_view name() const override { return "shuffle"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() > out.size())
      throw Error(ErrorCode::corrupt, "the shuffled data are larger than the chunk");
    const std::size_t count = in.size() / itemsize_;
    for (std::size_t k = 0; k < itemsize_; ++k) {
      const std::byte* plane = in.data() + k * count;
      for (std::size_t i = 0; i < count; ++i) out[i * itemsize_ + k] = plane[i];
    }
    const std::size_t whole = count * itemsize_;
    if (whole < in.size()) std::memcpy(out.data() + whole, in.data() + whole, in.size() - whole);
    return in.size();
  }

 private:
  const std::size_t itemsize_;
};

}  // namespace

std::unique_ptr<Codec> make_shuffle(const JsonRef& configuration, ChunkLayout&) {
  std::int64_t itemsize = 4;  // numcodecs' default
  if (const auto given = configuration.find("elementsize"); given && !given->is_null())
    itemsize = given->integer(1, 1 << 20);
  return std::make_unique<ShuffleCodec>(static_cast<std::size_t>(itemsize));
}

}  // namespace batchfs
