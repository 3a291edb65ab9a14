#include "engine/codec/sharding.h"

#include <cstring>

#include <fmt/format.h>

#include "engine/base/buffer.h"
#include "engine/base/limits.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {
constexpr std::int64_t kMaxChunks = INT64_C(1) << 26;  // an index of 1 GB
}

std::vector<CodecSpec> parse_codec_list(const JsonRef& list) {
  std::vector<CodecSpec> specs;
  constexpr std::string_view kPrefix = "numcodecs.";
  for (const JsonRef& codec : list.elements()) {
    CodecSpec spec;
    spec.name = codec.is_string() ? codec.string() : codec.at("name").string();
    if (spec.name.starts_with(kPrefix)) spec.name.erase(0, kPrefix.size());
    if (codec.is_object())
      if (const auto configuration = codec.find("configuration");
          configuration && !configuration->is_null())
        spec.configuration = configuration->value();
    specs.push_back(std::move(spec));
  }
  return specs;
}

ShardLayout::ShardLayout(const JsonRef& configuration, const ChunkLayout& layout) {
  const JsonRef shape = configuration.at("chunk_shape");
  for (const JsonRef& length : shape.elements()) inner_shape.push_back(length.integer(1));
  if (inner_shape.size() != layout.shape.size())
    throw shape.error("as many lengths as dimensions are needed");
  for (std::size_t d = 0; d < inner_shape.size(); ++d)
    if (layout.shape[d] % inner_shape[d] != 0)
      throw shape.error(fmt::format("shards of {} elements are not a whole number of chunks of {}",
                                    layout.shape[d], inner_shape[d]));
  grid = ChunkGrid(layout.shape, inner_shape);
  ChunkLayout inner_layout = layout;
  if (++inner_layout.shard_levels > kMaxShardLevels)
    throw configuration.error(
        fmt::format("shards inside shards of more than {} levels are not supported",
                    kMaxShardLevels),
        ErrorCode::not_supported);
  inner_layout.shape = inner_shape;
  inner = std::make_unique<CodecChain>(parse_codec_list(configuration.at("codecs")), inner_layout);
  if (grid.chunk_count() > kMaxChunks)
    throw shape.error(fmt::format("shards of more than {} chunks are not supported", kMaxChunks),
                      ErrorCode::not_supported);
  ChunkLayout index_layout{{grid.chunk_count(), 2}, make_type(Kind::unsigned_int, 8), {}};
  std::vector<CodecSpec> index_codecs{{"bytes", {{"endian", "little"}}}, {"crc32c"}};
  if (const auto given = configuration.find("index_codecs"))
    index_codecs = parse_codec_list(*given);
  index = std::make_unique<CodecChain>(index_codecs, index_layout);
  const std::optional<std::uint64_t> size = index->encoded_size();
  if (!size)
    throw configuration.error("compressed shard indexes are not supported",
                              ErrorCode::not_supported);
  index_bytes = *size;
  if (const auto location = configuration.find("index_location")) {
    const std::string text = location->string();
    if (text != "end" && text != "start") throw location->error("expected \"start\" or \"end\"");
    index_at_end = text == "end";
  }
}

ShardIndex::ShardIndex(const ShardLayout& layout, std::span<const std::byte> stored,
                       std::uint64_t object_size)
    : object_size_(object_size) {
  if (stored.size() != layout.index_bytes)
    throw Error(ErrorCode::corrupt,
                object_size != UINT64_MAX
                    ? fmt::format("the shard has {} bytes, its index alone needs {}", object_size,
                                  layout.index_bytes)
                    : fmt::format("{} bytes came for the shard's index, which has {}",
                                  stored.size(), layout.index_bytes));
  entries_.resize(static_cast<std::size_t>(layout.grid.chunk_count()));
  layout.index->decode(stored, std::as_writable_bytes(std::span(entries_)));
}

std::optional<ShardIndex::Entry> ShardIndex::entry(std::int64_t inner) const {
  const Entry& entry = entries_.at(static_cast<std::size_t>(inner));
  if (entry.offset == UINT64_MAX && entry.length == UINT64_MAX) return std::nullopt;
  if (entry.offset > object_size_ || entry.length > object_size_ - entry.offset)
    throw Error(ErrorCode::corrupt,
                fmt::format("the shard index points at bytes {} to {} of {}", entry.offset,
                            entry.offset + entry.length, object_size_));
  return entry;
}

namespace {

/// A whole shard as an array: for shards inside shards, and shards that are compressed as a whole.
class ShardingCodec final : public Codec {
 public:
  ShardingCodec(const JsonRef& configuration, const ChunkLayout& layout)
      : shard_(configuration, layout), layout_(layout) {
    const std::size_t itemsize = layout.type.itemsize;
    if (layout.fill_value.size() != itemsize)
      throw Error(ErrorCode::not_supported, "shards without a fill value are not supported");
  }
  std::string_view name() const override { return "sharding_indexed"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  std::uint64_t encoded_bound(std::uint64_t) const override {
    // Writers that replace inner chunks may leave the old ones behind.
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(shard_.grid.chunk_count()),
                               shard_.inner->encoded_bound(), &bytes))
      return UINT64_MAX;
    return 2 * (std::min(bytes, UINT64_MAX / 4) + shard_.index_bytes);
  }

  std::uint64_t scratch_bytes(std::uint64_t) const override {
    const auto index =
        static_cast<std::uint64_t>(shard_.grid.chunk_count()) * sizeof(ShardIndex::Entry);
    return index + shard_.inner->decoded_size() +
           std::max(shard_.inner->scratch_bytes(), shard_.index->scratch_bytes());
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() < shard_.index_bytes)
      throw Error(ErrorCode::corrupt, "the shard is too short for its index");
    const std::size_t at = shard_.index_at_end ? in.size() - shard_.index_bytes : 0;
    const ShardIndex index(shard_, in.subspan(at, shard_.index_bytes), in.size());
    const std::int64_t itemsize = layout_.type.itemsize;
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(element_count(layout_.shape)) * layout_.type.itemsize;
    if (out.size() < bytes) throw Error(ErrorCode::corrupt, "the shard is larger than expected");
    const Dims strides = c_strides(layout_.shape, itemsize);
    const Dims inner_strides = c_strides(shard_.inner_shape, itemsize);
    Buffer chunk(shard_.inner->decoded_size());
    for (std::int64_t i = 0; i < shard_.grid.chunk_count(); ++i) {
      const auto entry = index.entry(i);
      const Box box = shard_.grid.box(shard_.grid.chunk(i));
      std::byte* to = out.data();
      for (std::size_t d = 0; d < box.start.size(); ++d) to += box.start[d] * strides[d];
      if (entry) {
        shard_.inner->decode(in.subspan(entry->offset, entry->length), chunk.span());
        copy_strided(box.shape, layout_.type.itemsize, chunk.data(), inner_strides, to, strides);
      } else {
        copy_strided(box.shape, layout_.type.itemsize, layout_.fill_value.data(),
                     Dims(box.shape.size()), to, strides);
      }
    }
    return bytes;
  }

 private:
  const ShardLayout shard_;
  const ChunkLayout layout_;
};

}  // namespace

std::unique_ptr<Codec> make_sharding(const JsonRef& configuration, ChunkLayout& layout) {
  auto codec = std::make_unique<ShardingCodec>(configuration, layout);
  layout.serialized = true;
  return codec;
}

}  // namespace batchfs
