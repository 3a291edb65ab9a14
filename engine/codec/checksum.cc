// numcodecs' crc32 and adler32: a little-endian checksum before the data (`location`: "start", the
// default, or "end").

#include <cstring>

#include <libdeflate.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class ChecksumCodec final : public Codec {
 public:
  using Function = std::uint32_t (*)(std::uint32_t, const void*, std::size_t);
  ChecksumCodec(std::string_view name, Function function, std::uint32_t initial, bool at_end)
      : name_(name), function_(function), initial_(initial), at_end_(at_end) {}
  std::string_view name() const override { return name_; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded + 4;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() < 4 || in.size() - 4 > out.size())
      throw Error(ErrorCode::corrupt,
                  "data and checksum have " + std::to_string(in.size()) + " bytes");
    const std::size_t size = in.size() - 4;
    const std::span<const std::byte> data = in.subspan(at_end_ ? 0 : 4, size);
    std::uint32_t stored = 0;
    std::memcpy(&stored, in.data() + (at_end_ ? size : 0), 4);
    if (function_(initial_, data.data(), size) != stored)
      throw Error(ErrorCode::corrupt, "the " + std::string(name_) + " checksum does not match");
    if (size > 0) std::memcpy(out.data(), data.data(), size);
    return size;
  }

 private:
  const std::string_view name_;
  const Function function_;
  const std::uint32_t initial_;
  const bool at_end_;
};

bool is_at_end(const JsonRef& configuration) {
  const auto location = configuration.find("location");
  if (!location || location->is_null()) return false;
  const std::string text = location->string();
  if (text != "start" && text != "end") throw location->error("expected \"start\" or \"end\"");
  return text == "end";
}

}  // namespace

std::unique_ptr<Codec> make_crc32(const JsonRef& configuration, ChunkLayout&) {
  return std::make_unique<ChecksumCodec>("crc32", libdeflate_crc32, 0, is_at_end(configuration));
}

std::unique_ptr<Codec> make_adler32(const JsonRef& configuration, ChunkLayout&) {
  return std::make_unique<ChecksumCodec>("adler32", libdeflate_adler32, 1,
                                         is_at_end(configuration));
}

}  // namespace batchfs
