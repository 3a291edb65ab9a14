// Zstandard frames, taken apart on the host: the blocks, their literals and sequences, and which
// block's entropy tables each of them uses, so that all blocks can be decoded at the same time
// though blocks may repeat the tables of earlier ones. Source: RFC 8878, chapter 3.
//
// Rare features of valid frames (dictionaries, legacy formats, a frame without a size before
// another frame) are `unsupported`; so are frames whose tables would outgrow their data.

#include <algorithm>
#include <cstring>
#include <optional>

#include "gpu/program/plan.h"

namespace batchfs::gpu {

namespace {

constexpr std::uint32_t kFrameMagic = 0xfd2fb528, kSkippableMagic = 0x184d2a50,
                        kSkippableMask = 0xfffffff0;
constexpr std::uint64_t kMaxWindow = std::uint64_t{1} << 31;
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

/// Reads fields one after the other; once one is missing, everything after is.
class ByteReader {
 public:
  explicit ByteReader(DecodePlan::Bytes bytes) : bytes_(bytes) {}

  bool good() const { return good_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  std::uint64_t field(std::size_t size) {
    std::uint64_t value = 0;
    if (left() < size)
      good_ = false;
    else
      for (std::size_t i = 0; i < size; ++i)
        value |= std::uint64_t{static_cast<std::uint8_t>(bytes_[at_++])} << (8 * i);
    return value;
  }

  /// Skips `size` bytes and returns where they began.
  std::size_t skip(std::uint64_t size) {
    const std::size_t begin = at_;
    if (left() < size)
      good_ = false;
    else
      at_ += size;
    return begin;
  }

 private:
  DecodePlan::Bytes bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

struct FrameHeader {
  std::uint64_t content = kUnknown;
  std::uint64_t window = 0;
  bool checksum = false;
  bool dictionary = false;
};

/// RFC 8878, 3.1.1.1, after the magic number.
FrameHeader read_frame_header(ByteReader& in) {
  FrameHeader header;
  const std::uint64_t descriptor = in.field(1);
  const bool single_segment = descriptor >> 5 & 1;
  header.checksum = descriptor >> 2 & 1;
  if (descriptor >> 3 & 1) return header;  // reserved: a window of 0 is refused
  if (!single_segment) {
    const std::uint64_t window = in.field(1);
    const std::uint64_t base = std::uint64_t{1} << (10 + (window >> 3));
    header.window = base + base / 8 * (window & 7);
  }
  constexpr std::size_t kDictionarySizes[] = {0, 1, 2, 4};
  header.dictionary = in.field(kDictionarySizes[descriptor & 3]) != 0;
  const std::uint64_t size_code = descriptor >> 6;
  if (size_code == 0 && single_segment) header.content = in.field(1);
  if (size_code == 1) header.content = in.field(2) + 256;
  if (size_code == 2) header.content = in.field(4);
  if (size_code == 3) header.content = in.field(8);
  if (single_segment) header.window = header.content;
  return header;
}

}  // namespace

class ZstdPlanner {
 public:
  ZstdPlanner(DecodePlan& plan, DecodePlan::Bytes chunk, std::uint64_t source, Place target)
      : plan_(plan), in_(chunk), source_(source), target_(target) {}

  Verdict run(std::uint64_t size) {
    if (size > kMaxStream) return Verdict::unsupported;
    most_blocks_ = 64 + size / 512;
    std::uint64_t done = 0;
    bool sized = true;
    while (in_.left() > 0) {
      const std::uint64_t magic = in_.field(4);
      if (!in_.good()) return Verdict::damaged;
      if ((magic & kSkippableMask) == kSkippableMagic) {
        in_.skip(in_.field(4));
        if (!in_.good()) return Verdict::damaged;
        continue;
      }
      if (magic != kFrameMagic || !sized) return Verdict::unsupported;
      if (const Verdict verdict = frame(done, size, sized); verdict != Verdict::planned)
        return verdict;
    }
    return done == size ? Verdict::planned : Verdict::damaged;
  }

 private:
  /// Plans one frame, whose output starts at `done` of `size` bytes; sets `sized` to false if only
  /// its blocks determine its length.
  Verdict frame(std::uint64_t& done, std::uint64_t size, bool& sized) {
    const FrameHeader header = read_frame_header(in_);
    if (!in_.good()) return Verdict::damaged;
    if (header.dictionary) return Verdict::unsupported;
    if (header.window > kMaxWindow || (header.window == 0 && header.content != 0))
      return Verdict::unsupported;
    sized = header.content != kUnknown;
    if (sized && header.content > size - done) return Verdict::damaged;

    ZstdFrame frame;
    frame.first_block = static_cast<std::uint32_t>(plan_.zstd_blocks.size());
    frame.size = static_cast<std::uint32_t>(sized ? header.content : size - done);
    frame.target = {target_.area, target_.offset + done};
    frame.chunk = plan_.chunks_;
    done += frame.size;

    tree_.reset();
    for (auto& table : tables_) table.reset();
    most_sequences_ = frame.size / 3;
    largest_block_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(header.window, kZstdBlockSize));
    for (bool last = false; !last;) {
      const std::uint64_t fields = in_.field(3);
      if (!in_.good()) return Verdict::damaged;
      last = fields & 1;
      if (const Verdict verdict = block(fields >> 1 & 3, static_cast<std::uint32_t>(fields >> 3));
          verdict != Verdict::planned)
        return verdict;
    }
    frame.blocks = static_cast<std::uint32_t>(plan_.zstd_blocks.size()) - frame.first_block;
    frame.has_checksum = header.checksum;
    if (header.checksum) frame.checksum = static_cast<std::uint32_t>(in_.field(4));
    if (!in_.good()) return Verdict::damaged;
    plan_.zstd_frames.push_back(frame);
    return Verdict::planned;
  }

  /// RFC 8878, 3.1.1.2.
  Verdict block(std::uint64_t type, std::uint32_t size) {
    if (size > largest_block_) return Verdict::damaged;
    if (plan_.zstd_blocks.size() >= kDefaultTable - 1 || ++blocks_ > most_blocks_)
      return Verdict::unsupported;
    ZstdBlock block;
    block.chunk = plan_.chunks_;
    block.size = size;
    Verdict verdict = Verdict::planned;
    if (type == 0) {
      block.kind = ZstdBlockKind::raw;
      block.source = source_ + in_.skip(size);
    } else if (type == 1) {
      block.kind = ZstdBlockKind::rle;
      block.source = source_ + in_.skip(1);
    } else if (type == 2) {
      block.kind = ZstdBlockKind::compressed;
      block.size = largest_block_;
      if (in_.left() < size) return Verdict::damaged;
      const std::size_t end = in_.at() + size;
      verdict = literals(block, end);
      if (verdict == Verdict::planned) verdict = sequences(block, end);
    } else {
      return Verdict::damaged;
    }
    if (!in_.good()) return Verdict::damaged;
    plan_.zstd_blocks.push_back(block);
    return verdict;
  }

  std::uint32_t number() const { return static_cast<std::uint32_t>(plan_.zstd_blocks.size()); }

  /// RFC 8878, 3.1.1.3.1. The block's content ends at `end`.
  Verdict literals(ZstdBlock& block, std::size_t end) {
    const std::size_t begin = in_.at();
    if (begin >= end) return Verdict::damaged;
    const std::uint64_t first = in_.field(1);
    const std::uint64_t type = first & 3, format = first >> 2 & 3;
    if (type < 2) {
      const std::size_t more = format == 1 ? 1 : format == 3 ? 2 : 0;
      if (end - in_.at() < more) return Verdict::damaged;
      const std::uint64_t fields = first | in_.field(more) << 8;
      block.literal_size = static_cast<std::uint32_t>(more == 0 ? fields >> 3 : fields >> 4);
      if (block.literal_size > largest_block_) return Verdict::damaged;
      const std::uint32_t stored = type == 0 ? block.literal_size : 1;
      if (end - in_.at() < stored) return Verdict::damaged;
      block.literal_kind = type == 0 ? LiteralKind::raw : LiteralKind::rle;
      block.literal_source = source_ + in_.skip(stored);
      block.literal_source_size = stored;
      block.literals = block.literal_source;
      if (type == 1) block.literals = new_literals(block.literal_size);
      return Verdict::planned;
    }
    const std::size_t more = format < 2 ? 2 : format + 1;  // two sizes of 10, 14 or 18 bits
    if (end - in_.at() < more) return Verdict::damaged;
    const std::uint64_t fields = first | in_.field(more) << 8;
    const unsigned bits = format < 2 ? 10 : format == 2 ? 14 : 18;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    block.literal_size = static_cast<std::uint32_t>(fields >> 4 & mask);
    const std::uint64_t stored = fields >> (4 + bits) & mask;
    block.literal_kind = LiteralKind::huffman;
    block.literal_streams = format == 0 ? 1 : 4;
    if (block.literal_size == 0 || block.literal_size > largest_block_ || stored > end - in_.at())
      return Verdict::damaged;
    if (block.literal_streams == 4 && block.literal_size < 6) return Verdict::damaged;
    block.literal_source = source_ + in_.skip(stored);
    block.literal_source_size = stored;
    block.literal_tree = type == 2;
    if (block.literal_tree) tree_ = number();
    if (!tree_) return Verdict::damaged;
    block.tree = *tree_;
    block.literals = new_literals(block.literal_size);
    return Verdict::planned;
  }

  /// RFC 8878, 3.1.1.3.2.
  Verdict sequences(ZstdBlock& block, std::size_t end) {
    if (in_.at() >= end) return Verdict::damaged;
    std::uint64_t count = in_.field(1);
    if (count >= 128) {
      if (end - in_.at() < (count == 255 ? 2u : 1u)) return Verdict::damaged;
      count = count == 255 ? in_.field(2) + 0x7f00 : ((count - 128) << 8) + in_.field(1);
    }
    block.sequence_count = static_cast<std::uint32_t>(count);
    block.sequences = source_ + in_.at();
    block.sequences_size = static_cast<std::uint32_t>(end - in_.at());
    block.runs = plan_.runs;
    block.run_index = plan_.run_index;
    plan_.runs += max_zstd_runs(count);
    plan_.run_index += indexed(largest_block_);
    if (count == 0) {
      if (in_.at() != end) return Verdict::damaged;
      return Verdict::planned;
    }
    if (count > most_sequences_) return Verdict::damaged;  // each makes three bytes or more
    most_sequences_ -= count;
    if (in_.at() >= end) return Verdict::damaged;
    const std::uint64_t modes = in_.field(1);
    if ((modes & 3) != 0) return Verdict::damaged;
    for (int code = 0; code < 3; ++code) {
      const std::uint64_t mode = modes >> (6 - 2 * code) & 3;
      if (mode == 0) tables_[code] = kDefaultTable;
      if (mode == 1 || mode == 2) tables_[code] = number();
      if (!tables_[code]) return Verdict::damaged;
      block.tables[code] = *tables_[code];
    }
    in_.skip(end - in_.at());
    return Verdict::planned;
  }

  std::uint64_t new_literals(std::uint32_t size) {
    const std::uint64_t at = plan_.literals;
    plan_.literals += (size + 15) / 16 * 16;
    return at;
  }

  DecodePlan& plan_;
  ByteReader in_;
  std::uint64_t source_;
  Place target_;
  std::uint64_t blocks_ = 0, most_blocks_ = 0, most_sequences_ = 0;
  std::uint32_t largest_block_ = 0;
  std::optional<std::uint32_t> tree_;
  std::optional<std::uint32_t> tables_[3];
};

Verdict DecodePlan::zstd(Bytes chunk, std::uint64_t source, Place target, std::uint64_t size) {
  return ZstdPlanner(*this, chunk, source, target).run(size);
}

}  // namespace batchfs::gpu
