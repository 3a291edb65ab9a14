// LZMA as numcodecs and Python's lzma module write it: .xz (format 1), .lzma (2), or raw (3) with
// the filters in the configuration.

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <lzma.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMemoryLimit = UINT64_C(1) << 30;
constexpr std::uint64_t kState = 64 << 10;  // of the decoder, without its dictionary

/// A filter of Python's lzma module: {"id": LZMA_FILTER_..., ...}.
struct RawFilter {
  lzma_vli id = 0;
  lzma_options_lzma lzma{};
  lzma_options_delta delta{};
};

RawFilter parse_filter(const JsonRef& json) {
  RawFilter filter;
  filter.id = static_cast<lzma_vli>(json.at("id").integer(0));
  switch (filter.id) {
    case LZMA_FILTER_LZMA1:
    case LZMA_FILTER_LZMA2: {
      const auto preset = json.find("preset");
      const auto level = preset && !preset->is_null()
                             ? static_cast<std::uint32_t>(preset->integer(0, 0xffffffff))
                             : std::uint32_t{LZMA_PRESET_DEFAULT};
      if (lzma_lzma_preset(&filter.lzma, level)) throw json.error("unknown preset");
      if (const auto v = json.find("dict_size"))
        filter.lzma.dict_size =
            static_cast<std::uint32_t>(v->integer(LZMA_DICT_SIZE_MIN, UINT32_C(1) << 30));
      if (const auto v = json.find("lc"))
        filter.lzma.lc = static_cast<std::uint32_t>(v->integer(0, 4));
      if (const auto v = json.find("lp"))
        filter.lzma.lp = static_cast<std::uint32_t>(v->integer(0, 4));
      if (const auto v = json.find("pb"))
        filter.lzma.pb = static_cast<std::uint32_t>(v->integer(0, 4));
      return filter;
    }
    case LZMA_FILTER_DELTA:
      filter.delta.type = LZMA_DELTA_TYPE_BYTE;
      filter.delta.dist = 1;
      if (const auto v = json.find("dist"))
        filter.delta.dist = static_cast<std::uint32_t>(v->integer(1, 256));
      return filter;
    default:
      throw json.error(fmt::format("the LZMA filter {} is not supported", filter.id),
                       ErrorCode::not_supported);
  }
}

/// The library's form of the filters. The decoder only reads their options.
std::array<lzma_filter, LZMA_FILTERS_MAX + 1> filter_chain(const std::vector<RawFilter>& filters) {
  std::array<lzma_filter, LZMA_FILTERS_MAX + 1> chain{};
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const RawFilter& filter = filters[i];
    chain[i].id = filter.id;
    chain[i].options = filter.id == LZMA_FILTER_DELTA
                           ? static_cast<void*>(const_cast<lzma_options_delta*>(&filter.delta))
                           : static_cast<void*>(const_cast<lzma_options_lzma*>(&filter.lzma));
  }
  chain[filters.size()].id = LZMA_VLI_UNKNOWN;
  return chain;
}

class LzmaCodec final : public Codec {
 public:
  LzmaCodec(bool raw, std::vector<RawFilter> filters) : raw_(raw), filters_(std::move(filters)) {}
  std::string_view name() const override { return "lzma"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  /// The dictionary fills with decoded bytes, whatever size the data declare.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return std::min(decoded, kMemoryLimit) + kState;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const auto* from = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* to = reinterpret_cast<std::uint8_t*>(out.data());
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_ret status;
    if (raw_) {
      status = lzma_raw_decoder(&stream, filter_chain(filters_).data());
    } else {
      status = lzma_auto_decoder(&stream, kMemoryLimit, LZMA_CONCATENATED);
    }
    if (status != LZMA_OK)
      throw Error(ErrorCode::corrupt, "the LZMA decoder refuses the configuration");
    stream.next_in = from;
    stream.avail_in = in.size();
    stream.next_out = to;
    stream.avail_out = out.size();
    status = lzma_code(&stream, LZMA_FINISH);
    const std::size_t done = out.size() - stream.avail_out;
    const std::size_t left = stream.avail_in;
    // With its output full the decoder has not looked for the end yet.
    if (status == LZMA_OK && stream.avail_out == 0 && left > 0) {
      std::uint8_t more;
      stream.next_out = &more;
      stream.avail_out = 1;
      status = lzma_code(&stream, LZMA_FINISH);
      if (stream.avail_out == 0) status = LZMA_BUF_ERROR;
    }
    lzma_end(&stream);
    // A raw stream may have no end mark: it ends with its input.
    const bool raw_end = raw_ && left == 0 && (status == LZMA_OK || status == LZMA_BUF_ERROR);
    if (status != LZMA_STREAM_END && !raw_end)
      throw Error(ErrorCode::corrupt, status == LZMA_BUF_ERROR
                                          ? "the LZMA data are truncated or longer than expected"
                                          : "the LZMA data are damaged");
    return done;
  }

 private:
  const bool raw_;
  const std::vector<RawFilter> filters_;
};

}  // namespace

std::unique_ptr<Codec> make_lzma(const JsonRef& configuration, ChunkLayout&) {
  constexpr std::int64_t kRaw = 3;
  const auto format = configuration.find("format");
  const bool raw = format && format->integer(0, 3) == kRaw;
  std::vector<RawFilter> filters;
  if (const auto list = configuration.find("filters"); raw && list && !list->is_null())
    for (const JsonRef& filter : list->elements()) filters.push_back(parse_filter(filter));
  if (raw && (filters.empty() || filters.size() > LZMA_FILTERS_MAX))
    throw configuration.error("raw LZMA needs one to four filters");
  // UINT64_MAX: a combination that no decoder takes.
  if (raw && lzma_raw_decoder_memusage(filter_chain(filters).data()) > kMemoryLimit)
    throw configuration.error(
        "these LZMA filters do not go together or need more than 1 GB of memory");
  return std::make_unique<LzmaCodec>(raw, std::move(filters));
}

}  // namespace batchfs
