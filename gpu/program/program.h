#pragma once
// A batch, or a part of one, as work for a GPU: which compressed bytes to copy, how to decode them,
// how to assemble the batch. A program is flat bytes and holds no address, only offsets into areas
// of agreed sizes, so the process that makes it need not be the one that runs it:
//
//   staging     host memory with stored bytes, shared by both
//   source      stored bytes on the device
//   planes, literals, runs, run_index
//               scratch memory of the decoders
//   target      decoded chunks, kept for later programs (ChunkArena says where)
//   constants   numbers of the view, copied once
//   batch       the slots that batches are delivered in
//
// Programs run in the order of their numbers, `lanes` at a time. A program lists the earlier ones
// that it depends on. A process that runs another process's program calls check_program() first:
// after that no row leads outside of its area, whatever its maker did, and the kernels check what
// they read from compressed data.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/kernels/assembly.h"
#include "gpu/program/plan.h"

namespace batchfs::gpu {

/// Bytes, but for runs and run_index, which are entries. Scratch areas (source to run_index) are
/// one per lane.
struct AreaSizes {
  std::uint64_t staging = 0;
  std::uint64_t source = 0, planes = 0, literals = 0, runs = 0, run_index = 0;
  std::uint64_t target = 0, constants = 0, batch = 0;
};

struct CopyRow {
  std::uint64_t staging = 0, offset = 0, size = 0;
  Area area = Area::source;  // source or target
};

/// Chunks that are decoded together: rows of the program's tables, whose numbers of blocks, places
/// and chunks count from the round's first.
struct Round {
  struct Rows {
    std::uint32_t first = 0, count = 0;
  };
  Rows chunks, lz4_streams, deflate_streams, zstd_blocks, zstd_frames, unshuffles, plane_places;
  std::uint32_t longest_unshuffle = 0;
};

struct ProgramHeader {
  static constexpr std::uint64_t kMagic = 0x32676f7270736662;  // "bfsprog2"

  struct Table {
    std::uint64_t offset = 0;
    std::uint64_t rows = 0;
  };
  std::uint64_t magic = kMagic;
  std::uint64_t size = 0;
  std::uint64_t number = 0;
  std::uint64_t batch = 0;  // number of the batch within the stream
  std::uint32_t slot = 0;   // of the batch area
  std::uint32_t slices = 0;
  std::uint64_t chunks = 0;  // decoded ones: each has a status
  Table copies, rounds, lz4_streams, deflate_streams, zstd_blocks, zstd_frames, unshuffles;
  Table plane_places, gathers;
  Table decode_after, assemble_after;  // numbers of programs that must have ended
};

class Program {
 public:
  Program() = default;
  /// Takes bytes of any origin. Throws corrupt unless they have the form of a program.
  explicit Program(std::vector<std::byte> bytes);

  const ProgramHeader& header() const {
    return *reinterpret_cast<const ProgramHeader*>(bytes_.data());
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  template <class Row>
  std::span<const Row> table(const ProgramHeader::Table& table) const {
    return {reinterpret_cast<const Row*>(bytes_.data() + table.offset), table.rows};
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Throws corrupt if another process's conversion leads outside of the constants.
void check_conversions(std::span<const Conversion> conversions, std::uint64_t constants);

/// Throws corrupt if anything in the program leads outside of its area.
void check_program(const Program& program, const AreaSizes& sizes,
                   std::span<const Conversion> conversions);

/// Collects a program's rows.
class ProgramBuilder {
 public:
  std::uint64_t number = 0, batch = 0;
  std::uint32_t slot = 0;
  std::vector<std::uint64_t> decode_after, assemble_after;
  std::vector<CopyRow> copies;

  /// Adds a round. Precondition: the plan is finished and fits into the scratch areas.
  void add_round(const DecodePlan& plan);
  Program build(std::span<const Gather> gathers, std::uint32_t slices) const;

 private:
  std::vector<Round> rounds_;
  std::uint32_t chunks_ = 0;
  std::vector<Lz4Stream> lz4_streams_;
  std::vector<DeflateStream> deflate_streams_;
  std::vector<ZstdBlock> zstd_blocks_;
  std::vector<ZstdFrame> zstd_frames_;
  std::vector<Unshuffle> unshuffles_;
  std::vector<Place> plane_places_;
};

/// Do the scratch areas have room for the plan?
bool fits(const DecodePlan& plan, const AreaSizes& sizes);

/// The kernels' arguments for one round: pointers into `tables`, a copy of the program's bytes.
/// Precondition: `work` holds the areas' pointers and the address of the program's first status.
Work work_of_round(const Program& program, const Round& round, const std::uint8_t* tables,
                   Work work);
AssemblyWork work_of_assembly(const Program& program, const std::uint8_t* tables,
                              AssemblyWork work);

}  // namespace batchfs::gpu
