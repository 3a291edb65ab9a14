// bzip2 streams, one after another.

#include <algorithm>
#include <climits>

#include <bzlib.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class Bz2Codec final : public Codec {
 public:
  std::string_view name() const override { return "bz2"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  /// 100k + 4 x the largest block (bzip2's manual, "Memory management").
  std::uint64_t scratch_bytes(std::uint64_t) const override { return 3'700'000; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::size_t used = 0, done = 0;
    while (used < in.size()) {
      bz_stream stream{};
      if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK)
        throw Error(ErrorCode::no_memory, "no memory for the bzip2 decoder");
      int status = BZ_OK;
      while (status == BZ_OK) {
        // The library counts in unsigned int.
        const auto some_in =
            static_cast<unsigned>(std::min<std::size_t>(in.size() - used, UINT_MAX));
        const auto some_out =
            static_cast<unsigned>(std::min<std::size_t>(out.size() - done, UINT_MAX));
        // The decoder does not write to its input, its interface only lacks the const.
        stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()) + used);
        stream.avail_in = some_in;
        stream.next_out = reinterpret_cast<char*>(out.data()) + done;
        stream.avail_out = some_out;
        status = BZ2_bzDecompress(&stream);
        used += some_in - stream.avail_in;
        done += some_out - stream.avail_out;
        if (status == BZ_OK && stream.avail_in == some_in && stream.avail_out == some_out)
          break;  // stuck
      }
      BZ2_bzDecompressEnd(&stream);
      if (status == BZ_OK)
        throw Error(ErrorCode::corrupt, done == out.size()
                                            ? "the bzip2 data decode to more than was expected"
                                            : "the bzip2 data are truncated");
      if (status != BZ_STREAM_END) throw Error(ErrorCode::corrupt, "the bzip2 data are damaged");
    }
    return done;
  }
};

}  // namespace

std::unique_ptr<Codec> make_bz2(const JsonRef&, ChunkLayout&) {
  return std::make_unique<Bz2Codec>();
}

}  // namespace batchfs
