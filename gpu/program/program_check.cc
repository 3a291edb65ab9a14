// Programs that come from another process: every row is looked at once, before anything runs.
//
// Each offset must lie inside of its area. The kernels also rely on the following, which is
// checked, too:
// - Runs of two streams of a round do not overlap: a stream copies by its runs without checking
//   them again.
// - The blocks of a Zstandard frame belong to the frame's chunk: a refused block leaves no result.
// - A block that brings its own Huffman tree uses it: the tree's size is taken from the block's.
// The cost of a program is bounded by its size and that of the areas: each row belongs to one round
// only, and the bytes that are copied, decoded and assembled fit into their target areas.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "gpu/program/program.h"

namespace batchfs::gpu {

namespace {

constexpr std::uint64_t kMaxProgram = std::uint64_t{1} << 31;

void require(bool good, const char* what) {
  if (!good) throw Error(ErrorCode::corrupt, std::string("a batch program is damaged: ") + what);
}

bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t area) {
  return offset <= area && size <= area - offset;
}

bool is_bool(const bool& flag) { return reinterpret_cast<const unsigned char&>(flag) <= 1; }

/// The lowest and the highest of first + sum of at[d] * stride[d], and whether that is inside [0,
/// area - size].
class Reach {
 public:
  Reach(std::uint64_t first, std::uint64_t area, std::uint64_t size)
      : good_(first <= area && size <= area && area >> 62 == 0) {
    low_ = high_ = static_cast<__int128>(first);
    area_ = static_cast<__int128>(area) - static_cast<__int128>(size);
  }
  void add(std::uint32_t count, std::int64_t stride) {
    const __int128 distance = static_cast<__int128>(count - 1) * stride;
    (distance < 0 ? low_ : high_) += distance;
  }
  bool is_inside() const { return good_ && low_ >= 0 && high_ <= area_; }

 private:
  bool good_;
  __int128 low_, high_, area_;
};

/// Stretches of an area, [first, first + count), that must not overlap.
class Stretches {
 public:
  void add(std::uint64_t first, std::uint64_t count) {
    if (count > 0) stretches_.emplace_back(first, count);
  }
  bool are_apart() {
    std::sort(stretches_.begin(), stretches_.end());
    for (std::size_t i = 1; i < stretches_.size(); ++i)
      if (stretches_[i].first - stretches_[i - 1].first < stretches_[i - 1].second) return false;
    return true;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches_;
};

class Checker {
 public:
  Checker(const Program& program, const AreaSizes& sizes, std::span<const Conversion> conversions)
      : program_(program), header_(program.header()), sizes_(sizes), conversions_(conversions) {}

  void run() {
    std::uint64_t copied = 0;
    for (const CopyRow& row : program_.table<CopyRow>(header_.copies)) {
      require(row.area == Area::source || row.area == Area::target, "a copy's area");
      require(inside(row.staging, row.size, sizes_.staging), "a copy's origin");
      require(
          inside(row.offset, row.size, row.area == Area::source ? sizes_.source : sizes_.target),
          "a copy's place");
      add(copied, row.size, sizes_.source + sizes_.target, "the bytes that are copied");
    }
    // Every chunk has a row that writes its bytes.
    require(header_.chunks <= header_.lz4_streams.rows + header_.deflate_streams.rows +
                                  header_.zstd_frames.rows + header_.unshuffles.rows,
            "the number of chunks");
    for (const Round& round : program_.table<Round>(header_.rounds)) check(round);
    require(next_.chunks.first == header_.chunks &&
                next_.lz4_streams.first == header_.lz4_streams.rows &&
                next_.deflate_streams.first == header_.deflate_streams.rows &&
                next_.zstd_blocks.first == header_.zstd_blocks.rows &&
                next_.zstd_frames.first == header_.zstd_frames.rows &&
                next_.unshuffles.first == header_.unshuffles.rows &&
                next_.plane_places.first == header_.plane_places.rows,
            "rows of no round");
    check_gathers();
    check_numbers(header_.decode_after);
    check_numbers(header_.assemble_after);
  }

 private:
  /// Adds to a sum of at most `most`.
  static void add(std::uint64_t& sum, std::uint64_t size, std::uint64_t most, const char* what) {
    require(size <= most - sum, what);
    sum += size;
  }

  /// Rounds follow one another in each table: `next` is where the next one begins.
  template <class Row>
  std::span<const Row> rows(const ProgramHeader::Table& table, const Round::Rows& range,
                            Round::Rows& next) {
    require(range.first == next.first && inside(range.first, range.count, table.rows),
            "a round's rows");
    next.first += range.count;
    return program_.table<Row>(table).subspan(range.first, range.count);
  }

  /// Numbers of earlier programs, ascending.
  void check_numbers(const ProgramHeader::Table& table) {
    std::uint64_t before = 0;
    for (const std::uint64_t number : program_.table<std::uint64_t>(table)) {
      require(number > before && number < header_.number, "a program that it waits for");
      before = number;
    }
  }

  void check_place(const Place& place, std::uint64_t size) {
    require(place.area == Area::planes || place.area == Area::target, "where decoded bytes go");
    require(inside(place.offset, size, place.area == Area::planes ? sizes_.planes : sizes_.target),
            "where decoded bytes go");
  }

  void check(const Round& round) {
    require(round.chunks.first == next_.chunks.first &&
                inside(round.chunks.first, round.chunks.count, header_.chunks),
            "a round's chunks");
    next_.chunks.first += round.chunks.count;
    const std::uint32_t chunks = round.chunks.count;
    Stretches runs, run_index;
    for (const Lz4Stream& stream :
         rows<Lz4Stream>(header_.lz4_streams, round.lz4_streams, next_.lz4_streams))
      check(stream, max_lz4_runs(stream.source_size), chunks, runs, run_index);
    for (const DeflateStream& stream : rows<DeflateStream>(
             header_.deflate_streams, round.deflate_streams, next_.deflate_streams)) {
      require(stream.format == DeflateFormat::zlib || stream.format == DeflateFormat::gzip,
              "a stream's format");
      check(stream, max_deflate_runs(stream.size), chunks, runs, run_index);
    }
    const auto blocks = rows<ZstdBlock>(header_.zstd_blocks, round.zstd_blocks, next_.zstd_blocks);
    for (const ZstdBlock& block : blocks) {
      require(block.chunk < chunks, "a Zstandard block");
      check(block, blocks);
      if (block.kind != ZstdBlockKind::compressed) continue;
      runs.add(block.runs, max_zstd_runs(block.sequence_count));
      run_index.add(block.run_index, indexed(block.size));
    }
    require(runs.are_apart() && run_index.are_apart(), "runs that overlap");
    std::uint32_t next_block = 0;
    for (const ZstdFrame& frame :
         rows<ZstdFrame>(header_.zstd_frames, round.zstd_frames, next_.zstd_frames)) {
      require(frame.chunk < chunks && frame.first_block == next_block &&
                  inside(frame.first_block, frame.blocks, blocks.size()),
              "a Zstandard frame");
      next_block += frame.blocks;
      for (const ZstdBlock& block : blocks.subspan(frame.first_block, frame.blocks))
        require(block.chunk == frame.chunk, "a Zstandard frame's blocks");
      require(frame.size <= kMaxStream && is_bool(frame.has_checksum), "a Zstandard frame");
      check_place(frame.target, frame.size);
      add(decoded_, frame.size, sizes_.target, "the bytes that are decoded");
    }
    const auto places = rows<Place>(header_.plane_places, round.plane_places, next_.plane_places);
    std::uint32_t longest = 0;
    for (const Unshuffle& row :
         rows<Unshuffle>(header_.unshuffles, round.unshuffles, next_.unshuffles)) {
      check(row, places, chunks);
      longest = std::max(longest, row.size);
      add(unshuffled_, row.size, sizes_.target, "the bytes that are unshuffled");
    }
    require(longest == round.longest_unshuffle, "the longest shuffled stretch");
  }

  /// A stream of LZ4 or deflate, with room for `most_runs` runs.
  template <class Stream>
  void check(const Stream& stream, std::uint64_t most_runs, std::uint32_t chunks, Stretches& runs,
             Stretches& run_index) {
    require(stream.chunk < chunks && stream.size > 0 && stream.source_size > 0, "a stream");
    require(stream.size <= kMaxStream && stream.source_size <= kMaxStream, "a stream's size");
    require(inside(stream.source, stream.source_size, sizes_.source), "a stream's source");
    check_place(stream.target, stream.size);
    require(inside(stream.runs, most_runs, sizes_.runs), "a stream's runs");
    require(inside(stream.run_index, indexed(stream.size), sizes_.run_index), "a stream's index");
    runs.add(stream.runs, most_runs);
    run_index.add(stream.run_index, indexed(stream.size));
    add(decoded_, stream.size, sizes_.target, "the bytes that are decoded");
  }

  void check(const ZstdBlock& block, std::span<const ZstdBlock> blocks) {
    if (block.kind != ZstdBlockKind::compressed) {
      require(block.kind == ZstdBlockKind::raw || block.kind == ZstdBlockKind::rle,
              "a Zstandard block's kind");
      require(
          inside(block.source, block.kind == ZstdBlockKind::raw ? block.size : 1, sizes_.source),
          "a Zstandard block");
      return;
    }
    require(block.size <= kZstdBlockSize && block.literal_size <= kZstdBlockSize,
            "a Zstandard block's size");
    require(block.literal_source_size <= kZstdBlockSize, "a Zstandard block's literals");
    require(inside(block.literal_source, block.literal_source_size, sizes_.source),
            "a Zstandard block's literals");
    if (block.literal_kind == LiteralKind::raw) {
      require(inside(block.literals, block.literal_size, sizes_.source),
              "a Zstandard block's literals");
    } else {
      require(inside(block.literals, (std::uint64_t{block.literal_size} + 15) / 16 * 16,
                     sizes_.literals),
              "a Zstandard block's literals");
      require(block.literal_source_size > 0, "a Zstandard block's literals");
    }
    if (block.literal_kind == LiteralKind::huffman) {
      require(
          (block.literal_streams == 1 || block.literal_streams == 4) && is_bool(block.literal_tree),
          "a Huffman tree");
      require(block.tree < blocks.size(), "a Huffman tree");
      const ZstdBlock& with_tree = blocks[block.tree];
      require(with_tree.kind == ZstdBlockKind::compressed &&
                  with_tree.literal_kind == LiteralKind::huffman && with_tree.literal_tree &&
                  (!block.literal_tree || &with_tree == &block),
              "a Huffman tree");
    } else {
      require(block.literal_kind == LiteralKind::raw || block.literal_kind == LiteralKind::rle,
              "a Zstandard block's literals");
    }
    require(block.sequences_size <= kZstdBlockSize && block.sequence_count <= kZstdBlockSize,
            "a block's sequences");
    require(inside(block.sequences, block.sequences_size, sizes_.source), "a block's sequences");
    require(inside(block.runs, max_zstd_runs(block.sequence_count), sizes_.runs), "a block's runs");
    require(inside(block.run_index, indexed(block.size), sizes_.run_index), "a block's index");
    if (block.sequence_count == 0) return;
    require(block.sequences_size > 0, "a block's sequences");
    for (const std::uint32_t table : block.tables) {
      if (table == kDefaultTable) continue;
      require(table < blocks.size() && blocks[table].kind == ZstdBlockKind::compressed &&
                  blocks[table].sequences_size > 0,
              "a table of sequences");
    }
  }

  void check(const Unshuffle& row, std::span<const Place> places, std::uint32_t chunks) {
    require(row.chunk < chunks && row.item > 0 && is_bool(row.split), "a shuffled stretch");
    require(row.order == Order::copied || row.order == Order::shuffled ||
                row.order == Order::bitshuffled,
            "an order of bytes");
    require(row.size <= kMaxStream, "a shuffled stretch's size");
    require(row.order == Order::copied || row.item <= 255, "a shuffled stretch's items");
    require(inside(row.target, row.size, sizes_.target), "a shuffled stretch's place");
    const std::uint32_t parts = row.split ? row.item : 1;
    require(row.size % parts == 0 && inside(row.planes, parts, places.size()),
            "a shuffled stretch's planes");
    for (const Place& place : places.subspan(row.planes, parts)) {
      require(place.area == Area::source || place.area == Area::planes, "a plane");
      require(inside(place.offset, row.size / parts,
                     place.area == Area::source ? sizes_.source : sizes_.planes),
              "a plane");
    }
  }

  void check_gathers() {
    std::uint64_t slices = 0, written = 0;
    for (const Gather& row : program_.table<Gather>(header_.gathers)) {
      require(row.conversion < conversions_.size() && is_bool(row.from_constants), "a box");
      const Conversion& c = conversions_[row.conversion];
      require(row.dims >= 1 && row.dims <= kGatherDims && row.first_slice == slices, "a box");
      require(row.swap == 1 ||
                  ((row.swap == 2 || row.swap == 4 || row.swap == 8) && c.item % row.swap == 0),
              "a byte order");
      require(c.copies || row.swap == 1 || row.swap == c.item, "a byte order");
      Reach source(row.source, row.from_constants ? sizes_.constants : sizes_.target, c.item);
      Reach target(row.target, sizes_.batch, c.result_item);
      Reach entry(row.entry, c.entries, 1);
      std::uint64_t elements = 1;
      const auto alignment = [](std::uint32_t item) {
        return item == 2 || item == 4 || item == 8 ? item : 1;
      };
      bool is_aligned =
          row.source % alignment(c.item) == 0 && row.target % alignment(c.result_item) == 0;
      for (std::uint32_t d = 0; d < row.dims; ++d) {
        const GatherDim& dim = row.dim[d];
        require(dim.count >= 1, "a box's dimension");
        elements *= dim.count;
        require(elements <= kMaxStream, "a box's dimension");
        source.add(dim.count, dim.source_stride);
        target.add(dim.count, dim.target_stride);
        entry.add(dim.count, dim.entry_stride);
        is_aligned = is_aligned && dim.source_stride % alignment(c.item) == 0 &&
                     dim.target_stride % alignment(c.result_item) == 0;
      }
      require(elements == row.elements && is_aligned, "a box's elements");
      require(source.is_inside() && target.is_inside() && (!c.normalises || entry.is_inside()),
              "a box's elements");
      add(written, std::uint64_t{row.elements} * c.result_item, sizes_.batch,
          "the bytes of the boxes");
      slices += gather_slices(row.elements);
      require(slices <= 0x7fffffff, "the boxes");
    }
    require(slices == header_.slices, "the boxes");
  }

  const Program& program_;
  const ProgramHeader& header_;
  const AreaSizes& sizes_;
  std::span<const Conversion> conversions_;
  Round next_;                                  // where the next round's rows begin
  std::uint64_t decoded_ = 0, unshuffled_ = 0;  // bytes, of all rounds
};

}  // namespace

Program::Program(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {
  require(bytes_.size() >= sizeof(ProgramHeader) && bytes_.size() <= kMaxProgram, "its size");
  const ProgramHeader& h = header();
  require(h.magic == ProgramHeader::kMagic && h.size == bytes_.size(), "its header");
  const auto check = [&](const ProgramHeader::Table& table, std::uint64_t row) {
    require(table.offset % 16 == 0 && table.rows <= kMaxProgram &&
                inside(table.offset, table.rows * row, h.size),
            "a table");
  };
  check(h.copies, sizeof(CopyRow));
  check(h.rounds, sizeof(Round));
  check(h.lz4_streams, sizeof(Lz4Stream));
  check(h.deflate_streams, sizeof(DeflateStream));
  check(h.zstd_blocks, sizeof(ZstdBlock));
  check(h.zstd_frames, sizeof(ZstdFrame));
  check(h.unshuffles, sizeof(Unshuffle));
  check(h.plane_places, sizeof(Place));
  check(h.gathers, sizeof(Gather));
  check(h.decode_after, sizeof(std::uint64_t));
  check(h.assemble_after, sizeof(std::uint64_t));
}

void check_conversions(std::span<const Conversion> conversions, std::uint64_t constants) {
  const auto numbers = [&](std::uint64_t offset, std::uint64_t count) {
    return offset % sizeof(double) == 0 && count <= constants / sizeof(double) &&
           inside(offset, count * sizeof(double), constants);
  };
  for (const Conversion& c : conversions) {
    for (const bool* flag :
         {&c.copies, &c.has_scale, &c.has_offset, &c.in_doubles, &c.normalises, &c.has_nan_value})
      require(is_bool(*flag), "a conversion");
    require(c.item > 0 && c.result_item > 0, "a conversion's items");
    if (c.copies) {
      require(c.item == c.result_item, "a conversion's items");
      continue;
    }
    require(c.stored < Number::bf16 && c.result <= Number::bf16 && c.result >= Number::f16,
            "a conversion's types");
    require(c.arithmetic >= Number::f16 && c.arithmetic <= Number::f64, "a conversion's types");
    require(c.item == size_of(c.stored) && c.result_item == size_of(c.result),
            "a conversion's items");
    require(numbers(c.masked, c.masks), "a conversion's masks");
    if (c.normalises)
      require(c.entries > 0 && numbers(c.subtract, c.entries) && numbers(c.divide, c.entries),
              "a conversion's normalisation");
  }
}

void check_program(const Program& program, const AreaSizes& sizes,
                   std::span<const Conversion> conversions) {
  Checker(program, sizes, conversions).run();
}

}  // namespace batchfs::gpu
