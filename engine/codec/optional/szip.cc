// HDF5's filter szip, which imagecodecs names `imagecodecs_szip`: extended-Rice coding of CCSDS
// 121.0, decoded by libaec. The number of decoded bytes (u32) comes first, unless `header` is
// false.
//
// Source: HDF5's H5Zszip.c and libaec's sz_compat.c. Samples of 32 and 64 bits are coded as those
// of 8 bits: the first byte of each, then the second, and so on. A scanline whose samples do not
// fill its last block is padded.

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <libaec.h>

#include "engine/base/buffer.h"
#include "engine/base/rounding.h"
#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"
#include "engine/store/little_endian.h"

namespace batchfs {

namespace {

/// The library's functions.
struct Aec {
  decltype(&::aec_decode_init) begin;
  decltype(&::aec_decode) decode;
  decltype(&::aec_decode_end) end;

  Aec() {
    const SharedLibrary library("libaec.so.0", "the codec 'imagecodecs_szip'");
    library.find(begin, "aec_decode_init");
    library.find(decode, "aec_decode");
    library.find(end, "aec_decode_end");
  }
};

const Aec& aec() {
  static const Aec functions;
  return functions;
}

// Option bits and limits of SZIP.
constexpr unsigned kMsbFirst = 16, kPreprocess = 32;
constexpr std::int64_t kMaxOptions = 255, kMaxBlock = 32, kMaxScanline = 4096;

struct Parameters {
  unsigned options, bits;         // of a sample
  std::uint64_t block, scanline;  // samples
  bool header;

  /// Are the bytes of samples apart?
  bool is_split() const { return bits >= 32; }
  unsigned coded_bits() const { return is_split() ? 8 : bits; }
  std::uint64_t coded_sample() const { return coded_bits() > 16 ? 4 : coded_bits() > 8 ? 2 : 1; }
  std::uint64_t sample() const { return is_split() ? bits / 8 : coded_sample(); }
  std::uint64_t padded_scanline() const { return round_up(scanline, block); }
  bool is_padded() const { return scanline % block != 0; }
};

Error damaged_szip() { return Error(ErrorCode::corrupt, "the szip data are truncated or damaged"); }

class SzipCodec final : public Codec {
 public:
  explicit SzipCodec(Parameters parameters) : p_(parameters) {
    aec();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "imagecodecs_szip"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  /// A block that does not compress is preceded by up to 5 bits, and has 2 samples at least.
  std::uint64_t encoded_bound(std::uint64_t decoded) const override {
    return 2 * coded_bytes(decoded) + 4096;
  }
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return p_.is_padded() || p_.is_split() ? coded_bytes(decoded) : 0;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::uint64_t bytes = out.size();
    if (p_.header) {
      if (in.size() < sizeof(std::uint32_t)) throw damaged_szip();
      bytes = little_endian<std::uint32_t>(in, 0);
      in = in.subspan(sizeof(std::uint32_t));
      if (bytes > out.size()) throw Error(ErrorCode::corrupt, "the chunk is larger than expected");
    }
    if (bytes % p_.sample() != 0) throw damaged_szip();
    out = out.first(bytes);
    if (bytes == 0) return 0;
    if (!p_.is_padded() && !p_.is_split()) {
      decode_samples(in, out);
      return bytes;
    }
    Buffer coded(coded_bytes(bytes));
    decode_samples(in, coded.span());
    if (p_.is_padded()) remove_padding(coded, bytes);
    if (p_.is_split())
      join(coded, out);
    else
      std::memcpy(out.data(), coded.data(), bytes);
    return bytes;
  }

 private:
  /// With the padding of scanlines.
  std::uint64_t coded_bytes(std::uint64_t decoded) const {
    if (!p_.is_padded()) return decoded;
    const std::uint64_t sample = p_.coded_sample();
    return round_up(decoded, sample * p_.scanline) / p_.scanline * p_.padded_scanline();
  }

  /// Fills `out`, or throws corrupt. The last scanline may end early.
  void decode_samples(std::span<const std::byte> in, std::span<std::byte> out) const {
    aec_stream stream{};
    stream.next_in = reinterpret_cast<const unsigned char*>(in.data());
    stream.avail_in = in.size();
    stream.next_out = reinterpret_cast<unsigned char*>(out.data());
    stream.avail_out = out.size();
    stream.bits_per_sample = p_.coded_bits();
    stream.block_size = static_cast<unsigned>(p_.block);
    stream.rsi = static_cast<unsigned>(p_.padded_scanline() / p_.block);
    stream.flags = AEC_NOT_ENFORCE;
    if ((p_.options & kMsbFirst) != 0) stream.flags |= AEC_DATA_MSB;
    if ((p_.options & kPreprocess) != 0) stream.flags |= AEC_DATA_PREPROCESS;
    const int begun = aec().begin(&stream);
    if (begun == AEC_MEM_ERROR) throw Error(ErrorCode::no_memory, "no memory for the szip decoder");
    if (begun != AEC_OK)
      throw Error(ErrorCode::not_supported, "libaec does not decode szip data of these parameters");
    const std::unique_ptr<aec_stream, decltype(&::aec_decode_end)> ended(&stream, aec().end);
    const int done = aec().decode(&stream, AEC_FLUSH);
    if (done != AEC_OK || stream.total_out != out.size()) throw damaged_szip();
  }

  void remove_padding(Buffer& coded, std::uint64_t bytes) const {
    const std::uint64_t line = p_.scanline * p_.coded_sample(),
                        padded = p_.padded_scanline() * p_.coded_sample();
    for (std::uint64_t to = line, from = padded; to < bytes; to += line, from += padded)
      std::memmove(coded.data() + to, coded.data() + from, std::min(line, bytes - to));
  }

  /// From all first bytes, all second ones and so on.
  void join(const Buffer& coded, std::span<std::byte> out) const {
    const std::size_t sample = p_.sample(), count = out.size() / sample;
    for (std::size_t k = 0; k < sample; ++k)
      for (std::size_t i = 0; i < count; ++i) out[i * sample + k] = coded.data()[k * count + i];
  }

  const Parameters p_;
};

}  // namespace

std::unique_ptr<Codec> make_szip(const JsonRef& configuration, ChunkLayout&) {
  Parameters p{};
  p.options = static_cast<unsigned>(configuration.at("options_mask").integer(0, kMaxOptions));
  const JsonRef bits = configuration.at("bits_per_pixel");
  p.bits = static_cast<unsigned>(bits.integer(1, 64));
  if (p.bits > 24 && p.bits != 32 && p.bits != 64)
    throw bits.error("szip has samples of up to 24, of 32 and of 64 bits");
  const JsonRef block = configuration.at("pixels_per_block");
  p.block = static_cast<std::uint64_t>(block.integer(2, kMaxBlock));
  if (p.block % 2 != 0) throw block.error("a block has an even number of samples");
  p.scanline =
      static_cast<std::uint64_t>(configuration.at("pixels_per_scanline").integer(1, kMaxScanline));
  const auto header = configuration.find("header");
  p.header = !header || header->boolean();
  return std::make_unique<SzipCodec>(p);
}

}  // namespace batchfs
