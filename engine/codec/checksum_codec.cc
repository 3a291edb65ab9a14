#include "engine/codec/checksum_codec.h"

#include <cstring>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace batchfs {

namespace {

class ChecksumCodec final : public Codec {
 public:
  ChecksumCodec(std::string_view name, MatchesChecksum matches, ChecksumAt at)
      : name_(name), matches_(std::move(matches)), at_(at) {}

  std::string_view name() const override { return name_; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded + 4;
  }
  bool in_place() const override { return at_ == ChecksumAt::end; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() < 4 || in.size() - 4 > out.size())
      throw Error(ErrorCode::corrupt,
                  "data and checksum have " + std::to_string(in.size()) + " bytes");
    const bool at_end = at_ == ChecksumAt::end;
    const std::span<const std::byte> data = in.subspan(at_end ? 0 : 4, in.size() - 4);
    std::uint32_t stored = 0;
    std::memcpy(&stored, in.data() + (at_end ? data.size() : 0), 4);
    if (!matches_(data, stored))
      throw Error(ErrorCode::corrupt, "the " + std::string(name_) + " checksum does not match");
    if (out.data() != data.data() && !data.empty())
      std::memcpy(out.data(), data.data(), data.size());
    return data.size();
  }

 private:
  const std::string_view name_;
  const MatchesChecksum matches_;
  const ChecksumAt at_;
};

}  // namespace

ChecksumAt checksum_location(const JsonRef& configuration, ChecksumAt otherwise) {
  const auto location = configuration.find("location");
  if (!location || location->is_null()) return otherwise;
  const std::string text = location->string();
  if (text != "start" && text != "end") throw location->error("expected \"start\" or \"end\"");
  return text == "end" ? ChecksumAt::end : ChecksumAt::start;
}

std::unique_ptr<Codec> make_checksum_codec(std::string_view name, MatchesChecksum matches,
                                           ChecksumAt at) {
  return std::make_unique<ChecksumCodec>(name, std::move(matches), at);
}

}  // namespace batchfs
