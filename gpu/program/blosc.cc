// Splits Blosc 1 containers on the host: finds the streams, where they go, and how their bytes are
// put back into items. Source: c-blosc's code (its README_CHUNK_FORMAT counts the block offsets
// from the end of their table; the code counts from the start of the container).
//
// Parallelism: each block of a container is compressed on its own, and with splits each byte plane
// of a block, so that a 4 MiB chunk of float32 makes 32 independent LZ4 streams or 16 Zstandard
// frames, all of which become rows of the plan's tables.

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/codec/blosc_blocks.h"
#include "gpu/program/plan.h"

namespace batchfs::gpu {

static_assert(std::endian::native == std::endian::little, "container fields are read as they lie");

namespace {

constexpr std::size_t kHeader = 16;
constexpr std::uint8_t kShuffled = 0x01, kMemcpyed = 0x02, kBitshuffled = 0x04, kReserved = 0x08;
constexpr std::uint8_t kLz4 = 1, kZlib = 3, kZstd = 4;  // flags >> 5

std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

class BloscPlanner {
 public:
  BloscPlanner(DecodePlan& plan, DecodePlan::Bytes chunk, std::uint64_t source,
               std::uint64_t target)
      : plan_(plan), chunk_(chunk), source_(source), target_(target) {}

  Verdict run(std::uint64_t size) {
    if (chunk_.size() < kHeader) return Verdict::damaged;
    const auto version = static_cast<std::uint8_t>(chunk_[0]),
               codec_version = static_cast<std::uint8_t>(chunk_[1]);
    flags_ = static_cast<std::uint8_t>(chunk_[2]);
    item_ = static_cast<std::uint8_t>(chunk_[3]);
    const std::uint32_t decoded = u32_at(chunk_, 4), stored = u32_at(chunk_, 12);
    block_ = u32_at(chunk_, 8);
    if (version != 2 || (flags_ & kReserved) != 0) return Verdict::unsupported;
    if (stored != chunk_.size() || decoded != size || item_ == 0) return Verdict::damaged;
    if (decoded == 0) return Verdict::planned;
    if (flags_ & kMemcpyed) {
      // Stored unshuffled, whatever the shuffle bits say.
      if (stored != std::uint64_t{decoded} + kHeader) return Verdict::damaged;
      copy(0, decoded, kHeader);
      return Verdict::planned;
    }
    if (codec() != kLz4 && codec() != kZlib && codec() != kZstd) return Verdict::unsupported;
    if (codec_version != 1 || decoded > kMaxStream) return Verdict::unsupported;
    if (block_ == 0 || block_ > decoded) return Verdict::damaged;
    return blocks(decoded);
  }

 private:
  std::uint8_t codec() const { return flags_ >> 5; }

  Verdict blocks(std::uint32_t decoded) {
    const std::uint64_t count = (std::uint64_t{decoded} + block_ - 1) / block_;
    if (kHeader + count * sizeof(std::uint32_t) > chunk_.size()) return Verdict::damaged;
    // Writers make blocks of many KiB; tables for smaller ones would outgrow the data.
    if (count > 64 + decoded / 1024) return Verdict::unsupported;
    const BloscBlocks blocks(chunk_.subspan(kHeader, count * sizeof(std::uint32_t)), chunk_.size());
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint32_t at = static_cast<std::uint32_t>(i * block_);
      const std::uint32_t size = std::min(block_, decoded - at);
      if (const Verdict verdict = block(at, size, blocks.start(i), blocks.end(i));
          verdict != Verdict::planned)
        return verdict;
    }
    return Verdict::planned;
  }

  Order order(std::uint32_t size) const {
    if ((flags_ & kShuffled) != 0 && item_ > 1) return Order::shuffled;
    // c-blosc shuffles bits only in blocks whose count of items eight divides, and copies others.
    if ((flags_ & kBitshuffled) != 0 && size >= item_ && size / item_ % 8 == 0)
      return Order::bitshuffled;
    return Order::copied;
  }

  Verdict block(std::uint32_t at, std::uint32_t size, std::uint64_t start, std::uint64_t end) {
    const std::uint32_t parts = size == block_ ? blosc_streams(flags_, item_, block_) : 1;
    if (size % parts != 0) return Verdict::damaged;
    const std::uint32_t part = size / parts;
    const Order how = order(size);

    Unshuffle row;
    row.target = target_ + at;
    row.size = size;
    row.planes = static_cast<std::uint32_t>(plan_.plane_places.size());
    row.item = static_cast<std::uint16_t>(item_);
    row.order = how;
    row.split = parts > 1;
    row.chunk = plan_.chunks_;
    for (std::uint32_t i = 0; i < parts; ++i) {
      if (start > end || end - start < sizeof(std::uint32_t)) return Verdict::damaged;
      const std::uint32_t stored = u32_at(chunk_, start);
      start += sizeof stored;
      if (stored == 0 || stored > end - start) return Verdict::damaged;
      if (how == Order::copied) {
        if (stored == part)
          copy(at + i * part, part, start);
        else if (const Verdict verdict =
                     stream(start, stored, {Area::target, target_ + at + i * part}, part);
                 verdict != Verdict::planned)
          return verdict;
      } else if (stored == part) {
        plan_.plane_places.push_back({Area::source, source_ + start});
      } else {
        const Place place = plan_.new_planes(part);
        plan_.plane_places.push_back(place);
        if (const Verdict verdict = stream(start, stored, place, part); verdict != Verdict::planned)
          return verdict;
      }
      start += stored;
    }
    if (how != Order::copied) plan_.unshuffle(row);
    return Verdict::planned;
  }

  Verdict stream(std::uint64_t start, std::uint32_t stored, Place place, std::uint32_t size) {
    if (codec() == kLz4) return plan_.lz4_stream(source_ + start, stored, place, size);
    if (codec() == kZlib)
      return plan_.deflate_stream(source_ + start, stored, DeflateFormat::zlib, place, size);
    return plan_.zstd(chunk_.subspan(start, stored), source_ + start, place, size);
  }

  void copy(std::uint64_t at, std::uint32_t size, std::uint64_t start) {
    Unshuffle row;
    row.target = target_ + at;
    row.size = size;
    row.planes = static_cast<std::uint32_t>(plan_.plane_places.size());
    row.chunk = plan_.chunks_;
    plan_.plane_places.push_back({Area::source, source_ + start});
    plan_.unshuffle(row);
  }

  DecodePlan& plan_;
  DecodePlan::Bytes chunk_;
  std::uint64_t source_, target_;
  std::uint8_t flags_ = 0;
  std::uint32_t item_ = 1, block_ = 0;
};

Verdict DecodePlan::blosc(Bytes chunk, std::uint64_t source, std::uint64_t target,
                          std::uint64_t size) {
  return BloscPlanner(*this, chunk, source, target).run(size);
}

}  // namespace batchfs::gpu
