// `imagecodecs_lzw`: TIFF's LZW. Source: TIFF 6.0, section 13: codes of 9 to 12 bits, the highest
// bit first, each width one code earlier than needed.
//
// Each string of the table is the output of the code before, and one byte more, so that an entry is
// a place in the output.

#include <array>
#include <cstring>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

constexpr unsigned kClear = 256, kEnd = 257, kFirst = 258;
constexpr unsigned kMinWidth = 9, kMaxWidth = 12, kMaxCodes = 1 << kMaxWidth;

Error damaged_lzw(const char* why) {
  return Error(ErrorCode::corrupt, std::string("the LZW data ") + why);
}

/// The next code; nullopt where fewer than `width` bits are left.
class CodeReader {
 public:
  explicit CodeReader(std::span<const std::byte> in) : in_(in) {}

  std::optional<unsigned> next(unsigned width) {
    while (count_ < width) {
      if (at_ == in_.size()) return std::nullopt;
      bits_ = bits_ << 8 | static_cast<std::uint32_t>(in_[at_++]);
      count_ += 8;
    }
    count_ -= width;
    return (bits_ >> count_) & ((1U << width) - 1);
  }

 private:
  const std::span<const std::byte> in_;
  std::size_t at_ = 0;
  std::uint32_t bits_ = 0;  // the lowest `count_` are valid
  unsigned count_ = 0;
};

class LzwCodec final : public Codec {
 public:
  std::string_view name() const override { return "imagecodecs_lzw"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  /// A code has up to 12 bits and gives a byte at least.
  std::uint64_t encoded_bound(std::uint64_t decoded) const override { return 2 * decoded + 4096; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() >= 2 && in[0] == std::byte{0} && (in[1] & std::byte{1}) != std::byte{0})
      throw Error(ErrorCode::not_supported, "LZW data older than TIFF 6.0 are not supported");
    struct String {
      std::size_t offset, length;
    };
    std::array<String, kMaxCodes> table;
    unsigned codes = kFirst, width = kMinWidth;
    std::size_t done = 0;
    std::size_t last = 0;  // bytes of the string before; 0 after a clearing
    CodeReader reader(in);
    while (const auto code = reader.next(width)) {
      if (*code == kEnd) return done;
      if (*code == kClear) {
        codes = kFirst;
        width = kMinWidth;
        last = 0;
        continue;
      }
      const std::size_t previous = done - last;
      if (last != 0 && codes < kMaxCodes) table[codes++] = {previous, last + 1};
      if (*code > kEnd && *code >= codes) throw damaged_lzw("have a code that was not defined");
      const std::size_t length = *code < kClear ? 1 : table[*code].length;
      if (length > out.size() - done) throw damaged_lzw("decode to more than was expected");
      if (*code < kClear) {
        out[done] = static_cast<std::byte>(*code);
      } else {
        // The last byte of a code that has just been defined is the first of its own output.
        const std::byte* from = out.data() + table[*code].offset;
        for (std::size_t i = 0; i < length; ++i) out[done + i] = from[i];
      }
      done += length;
      last = length;
      if (codes + 1 == 1U << width && width < kMaxWidth) ++width;
    }
    return done;  // some writers leave out the end
  }
};

}  // namespace

std::unique_ptr<Codec> make_lzw(const JsonRef&, ChunkLayout&) {
  return std::make_unique<LzwCodec>();
}

}  // namespace batchfs
