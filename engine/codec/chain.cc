#include "engine/codec/chain.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "engine/base/buffer.h"
#include "engine/base/limits.h"
#include "engine/base/per_thread.h"

namespace batchfs {

namespace {

/// The limit for each buffer. Larger ones come from the buffers' own pool, which all threads share.
constexpr std::size_t kKeptScratch = 256 << 10;
constexpr std::uint64_t kMaxBound = UINT64_C(1) << 60;  // far above what fits anywhere

/// Two buffers per thread that grow and stay, so that decoding allocates nothing in the long run.
class Scratch {
 public:
  std::span<std::byte> get(int which, std::size_t size) {
    Buffer& buffer = buffers_[which];
    if (buffer.size() < size) buffer = Buffer(size);
    return buffer.span().first(size);
  }
  void trim() {
    for (Buffer& buffer : buffers_)
      if (buffer.size() > kKeptScratch) buffer = Buffer();
  }

  std::unique_ptr<Scratch> next;  // in the list of those that are free

 private:
  Buffer buffers_[2];
};

/// Scratch that is in use is not handed out again: a codec may run a chain inside a chain (shards).
class ScratchLease {
 public:
  ScratchLease()
      : free_(own_free()),
        scratch_(free_ == nullptr ? std::make_unique<Scratch>() : std::move(free_)) {
    if (scratch_->next) free_ = std::move(scratch_->next);
  }
  ~ScratchLease() {
    scratch_->trim();
    scratch_->next = std::move(free_);
    free_ = std::move(scratch_);
  }
  Scratch* operator->() { return scratch_.get(); }

 private:
  /// The first of a list that needs no memory of its own: giving scratch back must not fail.
  static std::unique_ptr<Scratch>& own_free() {
    static PerThread<std::unique_ptr<Scratch>> free;
    return free.get();
  }
  std::unique_ptr<Scratch>& free_;
  std::unique_ptr<Scratch> scratch_;
};

/// Arrays to arrays, then to bytes once, then bytes to bytes: v3 core, "Codecs".
void check_order(std::string_view name, bool serialized) {
  const CodecStage stage = codec_stage(name);
  if (stage == CodecStage::bytes && !serialized)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "the codec '{}' needs one before it that makes bytes of the elements, as 'bytes'",
            name));
  if (serialized && (stage == CodecStage::array || stage == CodecStage::serializer))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the codec '{}' takes arrays, the codec before it gives bytes", name));
}

/// Codecs that leave the elements as they are, or know their stored form.
void check_small(std::string_view name, const SmallNumber& stored) {
  for (const std::string_view known :
       {"bytes", "cast_value", "endian", "reshape", "sharding_indexed", "transpose"})
    if (name == known) return;
  throw Error(
      ErrorCode::not_supported,
      fmt::format("the codec '{}' on values of the type {} is not supported", name, stored.name));
}

bool keeps_positions(const Codec& codec) {
  return codec.name() == "bytes" || codec.name() == "reshape";
}

}  // namespace

std::uint64_t Codec::encoded_bound(std::uint64_t decoded) const {
  // Codes in use take at most nine bits for a byte (deflate's fixed one). Compressors store data
  // that they would make longer, so that real data stay below this; a chain of many codecs
  // multiplies it.
  return encoded_size(decoded).value_or(decoded + decoded / 8 + 4096);
}

void Codec::decode_range(std::span<const std::byte>, std::uint64_t, std::uint64_t,
                         std::span<std::byte>) const {
  throw Error(ErrorCode::internal, fmt::format("the codec '{}' decodes no ranges", name()));
}

std::uint64_t Codec::range_granularity(std::span<const std::byte>) const { return 1; }

std::optional<std::vector<Codec::Span>> Codec::stored_spans(std::span<const std::byte>,
                                                            std::uint64_t, std::uint64_t,
                                                            std::uint64_t,
                                                            std::uint64_t* more) const {
  *more = 0;
  return std::nullopt;
}

CodecChain::CodecChain(const std::vector<CodecSpec>& specs, ChunkLayout layout)
    : specs_(specs), layout_(std::move(layout)) {
  decoded_size_ = static_cast<std::uint64_t>(element_count(layout_.shape)) * layout_.type.itemsize;
  if (specs.size() > kMaxCodecs)
    throw Error(
        ErrorCode::not_supported,
        fmt::format("{} codecs in one chain; at most {} are supported", specs.size(), kMaxCodecs));
  ChunkLayout at = layout_;
  at.type.big_endian = false;  // in memory; the codec `bytes` restores the stored order
  at.serialized = false;
  std::vector<std::unique_ptr<Codec>> encode_order;
  for (const CodecSpec& spec : specs) {
    const CodecFactory factory = find_codec(spec.name);
    if (factory == nullptr) throw unknown_codec(spec.name);
    check_order(spec.name, at.serialized);
    if (at.stored != nullptr && !at.serialized) check_small(spec.name, *at.stored);
    encode_order.push_back(factory(JsonRef(spec.configuration, spec.name), at));
  }
  if (!at.serialized)
    throw Error(ErrorCode::invalid_argument,
                "no codec makes bytes of the elements, as 'bytes' does");
  // Sizes from the array side outwards: the output of each codec when it decodes.
  std::vector<std::uint64_t> sizes;
  std::uint64_t size = decoded_size_;
  for (const auto& codec : encode_order) {
    sizes.push_back(size);
    size = std::min(codec->encoded_bound(size), kMaxBound);
  }
  encoded_bound_ = size;
  plain_ = identity_ = true;
  for (std::size_t i = encode_order.size(); i-- > 0;) {
    if (!keeps_positions(*encode_order[i])) plain_ = false;
    if (!encode_order[i]->is_identity()) identity_ = false;
    codecs_.push_back(std::move(encode_order[i]));
    sizes_.push_back(sizes[i]);
  }
  scratch_bytes_ = find_scratch();
  // Ranges: at most one codec that does them, on the stored side; the rest only swaps bytes in
  // place.
  ranged_ = codecs_.front()->has_ranges();
  for (std::size_t i = 1; i < codecs_.size(); ++i)
    if (!keeps_positions(*codecs_[i])) ranged_ = false;
}

std::optional<std::uint64_t> CodecChain::encoded_size() const {
  std::optional<std::uint64_t> size = decoded_size_;
  for (std::size_t i = codecs_.size(); i-- > 0 && size;) size = codecs_[i]->encoded_size(*size);
  return size;
}

void CodecChain::check_stored_size(std::uint64_t size) const {
  const std::optional<std::uint64_t> exact = encoded_size();
  if (exact && size != *exact)
    throw Error(ErrorCode::corrupt,
                fmt::format("the stored chunk has {} bytes, {} were expected", size, *exact));
  if (size > encoded_bound_) throw too_long(size);
}

Error CodecChain::too_long(std::uint64_t size) const {
  return Error(ErrorCode::corrupt,
               fmt::format("the stored chunk has {} bytes or more, decoded it should have {}", size,
                           decoded_size_));
}

std::size_t CodecChain::first_direct() const {
  std::size_t direct = codecs_.size() - 1;
  while (direct > 0 && codecs_[direct]->in_place() && sizes_[direct - 1] == decoded_size_) --direct;
  return direct;
}

/// Follows decode(): two buffers that are used in turn, each as large as its largest use.
std::uint64_t CodecChain::find_scratch() const {
  std::uint64_t buffers[2] = {0, 0}, own = 0;
  int which = 0;
  bool is_ours = false;
  const std::size_t direct = first_direct();
  for (std::size_t i = 0; i < codecs_.size(); ++i) {
    own = std::max(own, codecs_[i]->scratch_bytes(sizes_[i]));
    if (i < direct && !(codecs_[i]->in_place() && is_ours)) {
      which = 1 - which;
      buffers[which] = std::max(buffers[which], sizes_[i]);
    }
    is_ours = true;
  }
  return std::min(buffers[0] + buffers[1] + std::min(own, kMaxBound), kMaxBound);
}

void CodecChain::decode(std::span<const std::byte> encoded, std::span<std::byte> out) const {
  auto check = [](std::size_t got, std::uint64_t expected) {
    if (got != expected)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the chunk decodes to {} bytes, {} were expected", got, expected));
  };
  const std::size_t direct = first_direct();
  ScratchLease scratch;
  std::span<const std::byte> in = encoded;
  std::span<std::byte> own;  // `in`, once it is memory of ours
  int which = 0;
  for (std::size_t i = 0; i < codecs_.size(); ++i) {
    std::span<std::byte> to;
    if (i >= direct)
      to = out;
    else if (codecs_[i]->in_place() && !own.empty())
      to = own;
    else
      to = scratch->get(which = 1 - which, sizes_[i]);
    const std::size_t got =
        codecs_[i]->decode(in, to.first(std::min<std::size_t>(to.size(), sizes_[i])));
    own = to.first(got);
    in = own;
  }
  check(in.size(), decoded_size_);
}

void CodecChain::decode_elements(std::span<const std::byte> encoded, std::uint64_t first,
                                 std::uint64_t count, std::span<std::byte> out) const {
  const std::uint64_t itemsize = layout_.type.itemsize;
  out = out.first(count * itemsize);
  codecs_.front()->decode_range(encoded, sizes_.front(), first * itemsize, out);
  for (std::size_t i = 1; i < codecs_.size(); ++i) codecs_[i]->decode(out, out);
}

std::optional<std::vector<Codec::Span>> CodecChain::stored_spans(std::span<const std::byte> head,
                                                                 std::uint64_t stored_size,
                                                                 std::uint64_t first,
                                                                 std::uint64_t count,
                                                                 std::uint64_t* more) const {
  const std::uint64_t itemsize = layout_.type.itemsize;
  *more = 0;
  if (!ranged_) return std::nullopt;
  return codecs_.front()->stored_spans(head, stored_size, first * itemsize, count * itemsize, more);
}

void CodecChain::decode_plain(std::span<std::byte> elements) const {
  for (const auto& codec : codecs_) codec->decode(elements, elements);
}

std::uint64_t CodecChain::range_granularity(std::span<const std::byte> encoded) const {
  return codecs_.front()->range_granularity(encoded);
}

}  // namespace batchfs
