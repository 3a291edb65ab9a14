#include "engine/store/decompression.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kFirst = 64 << 10;
constexpr unsigned char kGzipMagic[] = {0x1f, 0x8b}, kZstdMagic[] = {0x28, 0xb5, 0x2f, 0xfd};

bool starts_with(Bytes bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

Error too_large(std::uint64_t largest) {
  return Error(ErrorCode::no_memory,
               fmt::format("decompressed it takes more than the {} of memory that there are for "
                           "it; give more with --memory",
                           format_size(largest)));
}

Error cut_short() { return Error(ErrorCode::corrupt, "the file is cut short"); }

/// Memory that grows as bytes arrive: a damaged file may contain any size.
class Output {
 public:
  Output(std::uint64_t likely, std::uint64_t largest)
      : largest_(largest), out_(std::min(std::max(likely, kFirst), largest)) {}

  std::byte* at() { return out_.data() + done_; }
  std::size_t room() const { return out_.size() - done_; }
  void add(std::size_t bytes) { done_ += bytes; }
  /// Throws no_memory.
  void grow() {
    if (out_.size() >= largest_) throw too_large(largest_);
    Buffer more(std::min<std::uint64_t>(std::uint64_t{out_.size()} * 2, largest_));
    std::memcpy(more.data(), out_.data(), done_);
    out_ = std::move(more);
  }
  Buffer take() {
    out_.truncate(done_);
    return std::move(out_);
  }

 private:
  const std::uint64_t largest_;
  Buffer out_;
  std::size_t done_ = 0;
};

Buffer decompress_zstd(Bytes in, std::uint64_t largest, bool one_frame) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        ZSTD_freeDCtx);
  if (context == nullptr) throw Error(ErrorCode::no_memory, "no memory for the zstd decoder");
  // Old writers leave out the decompressed size.
  const unsigned long long told = ZSTD_getFrameContentSize(in.data(), in.size());
  const bool is_told = told != ZSTD_CONTENTSIZE_UNKNOWN && told != ZSTD_CONTENTSIZE_ERROR;
  if (is_told && told > largest) throw too_large(largest);
  constexpr std::uint64_t kMaxRatio = 64;
  const std::uint64_t likely = is_told ? std::min<std::uint64_t>(told, in.size() * kMaxRatio) : 0;
  Output out(std::max(likely, std::uint64_t{in.size()} * 4), largest);
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  for (;;) {
    ZSTD_outBuffer to{out.at(), out.room(), 0};
    const std::size_t left = ZSTD_decompressStream(context.get(), &to, &from);
    if (ZSTD_isError(left) != 0)
      throw Error(ErrorCode::corrupt, fmt::format("zstd: {}", ZSTD_getErrorName(left)));
    out.add(to.pos);
    if (left == 0) {
      if (one_frame || from.pos == from.size) break;
    } else if (out.room() == 0) {
      out.grow();
    } else if (from.pos == from.size && to.pos == 0) {
      throw cut_short();
    }
  }
  if (from.pos != from.size) throw Error(ErrorCode::corrupt, "bytes after the compressed data");
  return out.take();
}

Buffer decompress_gzip(Bytes in, std::uint64_t largest) {
  constexpr int kGzip = 16;  // added to the window's bits
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK)
    throw Error(ErrorCode::no_memory, "no memory for the gzip decoder");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  Output out(std::uint64_t{in.size()} * 4, largest);
  for (std::size_t used = 0;;) {
    const auto some_in = static_cast<uInt>(std::min<std::size_t>(in.size() - used, UINT_MAX));
    const auto some_out = static_cast<uInt>(std::min<std::size_t>(out.room(), UINT_MAX));
    // The decoder does not write to its input, its interface only lacks the const.
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()) + used);
    stream.avail_in = some_in;
    stream.next_out = reinterpret_cast<Bytef*>(out.at());
    stream.avail_out = some_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    used += some_in - stream.avail_in;
    out.add(some_out - stream.avail_out);
    if (status == Z_STREAM_END) {
      if (used == in.size()) return out.take();
      if (inflateReset(&stream) != Z_OK)
        throw Error(ErrorCode::corrupt, "the gzip data are damaged");
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw Error(ErrorCode::corrupt, "the gzip data are damaged");
    } else if (out.room() == 0) {
      out.grow();
    } else if (used == in.size()) {
      throw cut_short();
    }
  }
}

}  // namespace

FileCompression compression_of(Bytes head) {
  if (starts_with(head, kGzipMagic)) return FileCompression::gzip;
  return starts_with(head, kZstdMagic) ? FileCompression::zstd : FileCompression::none;
}

Buffer decompress_zstd_frame(Bytes in, std::uint64_t largest) {
  return decompress_zstd(in, largest, true);
}

Buffer decompress_file(Bytes in, std::uint64_t largest) {
  return compression_of(in) == FileCompression::gzip ? decompress_gzip(in, largest)
                                                     : decompress_zstd(in, largest, false);
}

}  // namespace batchfs
