// Blosc 1 containers, decoded by c-blosc. Source: c-blosc README_CHUNK_FORMAT and its code. The
// frame's header is authoritative over the metadata, which writers fill in loosely.

#include <algorithm>
#include <cstring>
#include <vector>

#include <blosc.h>
#include <fmt/format.h>

#include "engine/base/buffer.h"
#include "engine/codec/blosc_blocks.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

struct Header {
  std::size_t decoded = 0, block = 0;
  std::uint8_t flags = 0, typesize = 1;
};

/// Checks the container as a whole: after this c-blosc stays inside `in`.
Header read_header(std::span<const std::byte> in) {
  if (in.size() < BLOSC_MIN_HEADER_LENGTH)
    throw Error(ErrorCode::corrupt, "the Blosc frame is truncated");
  std::size_t stored = 0;
  Header header;
  blosc_cbuffer_sizes(in.data(), &header.decoded, &stored, &header.block);
  if (stored != in.size())
    throw Error(ErrorCode::corrupt,
                fmt::format("the Blosc frame says it has {} bytes, it has {}", stored, in.size()));
  std::size_t validated = 0;
  if (blosc_cbuffer_validate(in.data(), in.size(), &validated) < 0)
    throw Error(ErrorCode::corrupt, "the Blosc frame is damaged");
  header.flags = static_cast<std::uint8_t>(in[2]);
  header.typesize = std::max<std::uint8_t>(1, static_cast<std::uint8_t>(in[3]));
  return header;
}

class BloscCodec final : public Codec {
 public:
  std::string_view name() const override { return "blosc"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const Header header = read_header(in);
    if (header.decoded > out.size())
      throw Error(ErrorCode::corrupt,
                  fmt::format("the Blosc frame holds {} bytes, {} were expected", header.decoded,
                              out.size()));
    if (header.decoded == 0) return 0;
    check_blocks(in, header, 0, header.decoded);
    const int got = blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
    if (got < 0 || static_cast<std::size_t>(got) != header.decoded) throw damaged(in);
    return header.decoded;
  }

  bool has_ranges() const override { return true; }

  std::uint64_t range_granularity(std::span<const std::byte> in) const override {
    return std::max<std::uint64_t>(1, read_header(in).block);
  }

  void decode_range(std::span<const std::byte> in, std::uint64_t decoded_size, std::uint64_t offset,
                    std::span<std::byte> out) const override {
    const Header header = read_header(in);
    if (header.decoded != decoded_size)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the Blosc frame holds {} bytes, {} were expected", header.decoded,
                              decoded_size));
    if (out.empty()) return;
    if (out.size() > header.decoded || offset > header.decoded - out.size()) throw damaged(in);
    // c-blosc counts in items of the frame's own type size.
    const std::uint64_t item = header.typesize;
    const std::uint64_t first = offset / item, last = (offset + out.size() + item - 1) / item;
    if (last * item >
        header.decoded) {  // streams do not divide the block: its last bytes are in none of them
      Buffer whole(header.decoded);
      decode(in, whole.span());
      std::memcpy(out.data(), whole.data() + offset, out.size());
      return;
    }
    check_blocks(in, header, first * item, last * item);
    const bool whole_items = offset % item == 0 && out.size() % item == 0;
    if (whole_items) {
      get_items(in, first, last - first, out);
    } else {
      Buffer around((last - first) * item);
      get_items(in, first, last - first, around.span());
      std::memcpy(out.data(), around.data() + (offset - first * item), out.size());
    }
  }

  std::optional<std::vector<Span>> stored_spans(std::span<const std::byte> head,
                                                std::uint64_t stored_size, std::uint64_t offset,
                                                std::uint64_t length,
                                                std::uint64_t* more) const override {
    *more = 0;
    if (head.size() < BLOSC_MIN_HEADER_LENGTH) {
      *more = BLOSC_MIN_HEADER_LENGTH;
      return std::nullopt;
    }
    std::size_t decoded = 0, stored = 0, block = 0;
    blosc_cbuffer_sizes(head.data(), &decoded, &stored, &block);
    // Anything unusual takes the other road: decoding the whole frame reports the error.
    constexpr std::size_t kMaxDecoded =
        BLOSC_MAX_BUFFERSIZE;  // sizes are signed in the header: negative ones are above
    if (stored != stored_size || decoded > kMaxDecoded || block == 0 || block > decoded ||
        length == 0 || offset + length > decoded)
      return std::nullopt;
    const auto flags = static_cast<std::uint8_t>(head[2]);
    // Items that straddle the range are decoded whole.
    const std::uint64_t item = std::max<std::uint64_t>(1, static_cast<std::uint8_t>(head[3]));
    if ((offset + length + item - 1) / item * item > decoded)
      return std::nullopt;  // more than whole items: see decode_range
    offset -= offset % item;
    if (flags & BLOSC_MEMCPYED) {
      if (stored_size < BLOSC_MAX_OVERHEAD + decoded) return std::nullopt;
      const std::uint64_t end = std::min<std::uint64_t>(decoded, offset + length + 2 * item);
      return std::vector<Span>{{BLOSC_MAX_OVERHEAD + offset, end - offset}};
    }
    const std::uint64_t blocks = (decoded + block - 1) / block;
    const std::uint64_t table = BLOSC_MAX_OVERHEAD + 4 * blocks;
    if (table > stored_size) return std::nullopt;
    if (head.size() < table) {
      *more = table;
      return std::nullopt;
    }
    const BloscBlocks places(head.subspan(BLOSC_MAX_OVERHEAD, 4 * blocks), stored_size);
    std::vector<Span> spans;
    const std::uint64_t last =
        std::min<std::uint64_t>(blocks, (offset + length + 2 * item + block - 1) / block);
    for (std::uint64_t i = offset / block; i < last; ++i) {
      const std::uint64_t start = places.start(i), end = places.end(i);
      if (start < table || end <= start) return std::nullopt;
      if (!spans.empty() && spans.back().offset + spans.back().length == start)
        spans.back().length += end - start;
      else
        spans.push_back({start, end - start});
    }
    return spans;
  }

 private:
  /// Do the blocks that hold these decoded bytes end before the next ones begin? See BloscBlocks.
  static void check_blocks(std::span<const std::byte> in, const Header& header, std::uint64_t begin,
                           std::uint64_t end) {
    if (header.flags & BLOSC_MEMCPYED) return;
    const std::size_t block = header.block;
    if (block == 0) throw damaged(in);
    const std::uint64_t count = header.decoded / block + (header.decoded % block != 0);
    if (count > (in.size() - BLOSC_MAX_OVERHEAD) / 4) throw damaged(in);
    const BloscBlocks blocks(in.subspan(BLOSC_MAX_OVERHEAD, 4 * count), in.size());
    const std::uint32_t whole = blosc_streams(header.flags, header.typesize, block);
    for (std::uint64_t i = begin / block; i < count && i * block < end; ++i) {
      const bool short_one = header.decoded - i * block < block;
      const std::uint64_t stop = blocks.end(i);
      std::uint64_t at = blocks.start(i);
      for (std::uint32_t streams = short_one ? 1 : whole; streams > 0; --streams) {
        std::uint32_t size = 0;
        if (at > stop || stop - at < sizeof size) throw damaged(in);
        std::memcpy(&size, in.data() + at, sizeof size);
        at += sizeof size;
        if (size > stop - at) throw damaged(in);
        at += size;
      }
    }
  }

  static void get_items(std::span<const std::byte> in, std::uint64_t first, std::uint64_t count,
                        std::span<std::byte> out) {
    const int got =
        blosc_getitem(in.data(), static_cast<int>(first), static_cast<int>(count), out.data());
    if (got < 0 || static_cast<std::size_t>(got) != out.size()) throw damaged(in);
  }

  static Error damaged(std::span<const std::byte> in) {
    const char* library = blosc_cbuffer_complib(in.data());
    if (library == nullptr)
      return Error(ErrorCode::not_supported, "the Blosc frame's inner codec is not supported");
    return Error(ErrorCode::corrupt, fmt::format("the Blosc frame ({}) does not decode", library));
  }
};

}  // namespace

std::unique_ptr<Codec> make_blosc(const JsonRef&, ChunkLayout&) {
  return std::make_unique<BloscCodec>();
}

}  // namespace batchfs
