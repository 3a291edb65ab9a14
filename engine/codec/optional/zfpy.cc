// numcodecs' `zfpy`: a zfp stream with its header. Source: zfp 1.0, "High-level C API"; zfpy.
//
// zfp's decoder never asks how long its input is. A block takes a bounded number of bits, so that
// the stream is copied to memory in which the longest stream of its kind fits, followed by zeros.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <zfp.h>

#include "engine/base/buffer.h"
#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

/// The library's functions.
struct Zfp {
  decltype(&::stream_open) open_bits;
  decltype(&::stream_close) close_bits;
  decltype(&::zfp_stream_open) open_stream;
  decltype(&::zfp_stream_close) close_stream;
  decltype(&::zfp_stream_rewind) rewind;
  decltype(&::zfp_stream_maximum_size) maximum_size;
  decltype(&::zfp_field_alloc) new_field;
  decltype(&::zfp_field_free) free_field;
  decltype(&::zfp_field_set_pointer) set_pointer;
  decltype(&::zfp_read_header) read_header;
  decltype(&::zfp_decompress) decompress;

  Zfp() {
    const SharedLibrary library("libzfp.so.1", "the codec 'zfpy'");
    library.find(open_bits, "stream_open");
    library.find(close_bits, "stream_close");
    library.find(open_stream, "zfp_stream_open");
    library.find(close_stream, "zfp_stream_close");
    library.find(rewind, "zfp_stream_rewind");
    library.find(maximum_size, "zfp_stream_maximum_size");
    library.find(new_field, "zfp_field_alloc");
    library.find(free_field, "zfp_field_free");
    library.find(set_pointer, "zfp_field_set_pointer");
    library.find(read_header, "zfp_read_header");
    library.find(decompress, "zfp_decompress");
  }
};

const Zfp& zfp() {
  static const Zfp functions;
  return functions;
}

/// Bytes that the decoder may read beyond the longest stream: it reads words.
constexpr std::uint64_t kPadding = 64;
constexpr std::size_t kMaxRank = 4;  // of zfp; more only where a filter flattens before
constexpr std::uint64_t kHeaderBytes = (ZFP_HEADER_MAX_BITS + 7) / 8;

zfp_type type_of(const DataType& type) {
  if (type.kind == Kind::floating && type.itemsize == 4) return zfp_type_float;
  if (type.kind == Kind::floating && type.itemsize == 8) return zfp_type_double;
  if (type.kind == Kind::signed_int && type.itemsize == 4) return zfp_type_int32;
  if (type.kind == Kind::signed_int && type.itemsize == 8) return zfp_type_int64;
  throw Error(
      ErrorCode::not_supported,
      fmt::format("the codec 'zfpy' on values of the type {} is not supported", type.name()));
}

/// A stream over bytes, and the field that it decodes to.
struct Reader {
  explicit Reader(std::span<std::byte> bytes)
      : bits(zfp().open_bits(bytes.data(), bytes.size()), zfp().close_bits),
        stream(zfp().open_stream(bits.get()), zfp().close_stream),
        field(zfp().new_field(), zfp().free_field) {
    if (bits == nullptr || stream == nullptr || field == nullptr)
      throw Error(ErrorCode::no_memory, "no memory for the zfp decoder");
    zfp().rewind(stream.get());
    if (zfp().read_header(stream.get(), field.get(), ZFP_HEADER_FULL) == 0)
      throw Error(ErrorCode::corrupt, "the zfp data have no header");
  }

  const std::unique_ptr<bitstream, decltype(&::stream_close)> bits;
  const std::unique_ptr<zfp_stream, decltype(&::zfp_stream_close)> stream;
  const std::unique_ptr<zfp_field, decltype(&::zfp_field_free)> field;
};

class ZfpyCodec final : public Codec {
 public:
  ZfpyCodec(zfp_type type, Dims shape, std::size_t itemsize)
      : type_(type), shape_(std::move(shape)), itemsize_(itemsize) {
    zfp();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "zfpy"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  /// Twice the values of all blocks, of which those at the edge are filled up.
  std::uint64_t encoded_bound(std::uint64_t decoded) const override {
    constexpr double kMost = 0x1p58;
    double blocks = static_cast<double>(itemsize_);  // bytes
    const std::size_t first = shape_.size() > kMaxRank && shape_[0] == 1 ? 1 : 0;
    for (std::size_t d = first; d < shape_.size(); ++d)
      blocks *= 4 * std::ceil(static_cast<double>(shape_[d]) / 4);
    if (shape_.size() - first > kMaxRank) blocks = 0;
    const auto filled = static_cast<std::uint64_t>(std::min(blocks, kMost));
    return 2 * std::max(decoded + 4 * itemsize_, filled) + 4096;
  }
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return encoded_bound(decoded) + kPadding;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::size_t bytes = static_cast<std::size_t>(element_count(shape_)) * itemsize_;
    if (out.size() < bytes) throw Error(ErrorCode::corrupt, "the chunk is larger than expected");
    const std::uint64_t bound = encoded_bound(bytes);
    if (in.empty()) throw Error(ErrorCode::corrupt, "the zfp data have no header");
    if (in.size() > bound) throw Error(ErrorCode::corrupt, "the zfp data are too long");
    // The header alone, first: it bounds the size of the rest.
    std::uint64_t longest = 0;
    {
      std::byte head[kHeaderBytes + kPadding] = {};
      std::memcpy(head, in.data(), std::min<std::size_t>(in.size(), kHeaderBytes));
      const Reader header(head);
      check(*header.field);
      longest = zfp().maximum_size(header.stream.get(), header.field.get());
    }
    if (longest == 0 || longest > bound)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the zfp data may take {} bytes for values of {}", longest, bytes));
    Buffer padded(std::max<std::uint64_t>(longest, in.size()) + kPadding);
    std::memcpy(padded.data(), in.data(), in.size());
    std::memset(padded.data() + in.size(), 0, padded.size() - in.size());
    const Reader reader(padded.span());
    check(*reader.field);
    zfp().set_pointer(reader.field.get(), out.data());
    const std::size_t used = zfp().decompress(reader.stream.get(), reader.field.get());
    if (used == 0 || used > in.size())
      throw Error(ErrorCode::corrupt, "the zfp data are truncated or damaged");
    return bytes;
  }

 private:
  /// The header's lengths are those of the chunk, the last dimension first; without a leading one
  /// of length 1, where the array has been given it (add_leading_axis()); or, after a filter that
  /// flattens, a single one.
  void check(const zfp_field& field) const {
    const std::size_t lengths[] = {field.nx, field.ny, field.nz, field.nw};
    Dims stored;
    for (std::size_t i = 4; i-- > 0;)
      if (lengths[i] != 0) stored.push_back(static_cast<std::int64_t>(lengths[i]));
    const Dims flat{element_count(shape_)};
    const bool is_tail = !shape_.empty() && shape_[0] == 1 &&
                         std::equal(stored.begin(), stored.end(), shape_.begin() + 1, shape_.end());
    if (field.type != type_ || (stored != shape_ && stored != flat && !is_tail))
      throw Error(ErrorCode::corrupt,
                  "the zfp data are of another shape or data type than the chunk");
  }

  const zfp_type type_;
  const Dims shape_;
  const std::size_t itemsize_;
};

}  // namespace

std::unique_ptr<Codec> make_zfpy(const JsonRef&, ChunkLayout& layout) {
  // Everything that decoding needs stands in the stream's header.
  if (layout.type.big_endian)
    throw Error(ErrorCode::not_supported, "the codec 'zfpy' on big-endian values is not supported");
  auto codec =
      std::make_unique<ZfpyCodec>(type_of(layout.type), layout.shape, layout.type.itemsize);
  layout.serialized = true;
  return codec;
}

}  // namespace batchfs
