#include "gpu/program/program.h"

#include <cstring>

#include "engine/base/error.h"
#include "engine/base/rounding.h"

namespace batchfs::gpu {

namespace {

constexpr std::uint64_t kSectionAlignment = 16;

}  // namespace

void ProgramBuilder::add_round(const DecodePlan& plan) {
  Round round;
  const auto append = [](auto& to, const auto& from, Round::Rows& rows) {
    rows = {static_cast<std::uint32_t>(to.size()), static_cast<std::uint32_t>(from.size())};
    to.insert(to.end(), from.begin(), from.end());
  };
  round.chunks = {chunks_, plan.chunks()};
  chunks_ += plan.chunks();
  append(lz4_streams_, plan.lz4_streams, round.lz4_streams);
  append(deflate_streams_, plan.deflate_streams, round.deflate_streams);
  append(zstd_blocks_, plan.zstd_blocks, round.zstd_blocks);
  append(zstd_frames_, plan.zstd_frames, round.zstd_frames);
  append(unshuffles_, plan.unshuffles, round.unshuffles);
  append(plane_places_, plan.plane_places, round.plane_places);
  round.longest_unshuffle = plan.longest_unshuffle;
  rounds_.push_back(round);
}

Program ProgramBuilder::build(std::span<const Gather> gathers, std::uint32_t slices) const {
  ProgramHeader header;
  header.number = number;
  header.batch = batch;
  header.slot = slot;
  header.slices = slices;
  header.chunks = chunks_;
  std::uint64_t size = round_up<std::uint64_t>(sizeof header, kSectionAlignment);
  const auto place = [&](const auto& rows, ProgramHeader::Table& table) {
    table = {size, rows.size()};
    size += round_up<std::uint64_t>(rows.size() * sizeof rows[0], kSectionAlignment);
  };
  place(copies, header.copies);
  place(rounds_, header.rounds);
  place(lz4_streams_, header.lz4_streams);
  place(deflate_streams_, header.deflate_streams);
  place(zstd_blocks_, header.zstd_blocks);
  place(zstd_frames_, header.zstd_frames);
  place(unshuffles_, header.unshuffles);
  place(plane_places_, header.plane_places);
  place(gathers, header.gathers);
  place(decode_after, header.decode_after);
  place(assemble_after, header.assemble_after);
  header.size = size;
  std::vector<std::byte> bytes(size);
  const auto put = [&](const auto& rows, const ProgramHeader::Table& table) {
    if (!rows.empty())
      std::memcpy(bytes.data() + table.offset, rows.data(), rows.size() * sizeof rows[0]);
  };
  std::memcpy(bytes.data(), &header, sizeof header);
  put(copies, header.copies);
  put(rounds_, header.rounds);
  put(lz4_streams_, header.lz4_streams);
  put(deflate_streams_, header.deflate_streams);
  put(zstd_blocks_, header.zstd_blocks);
  put(zstd_frames_, header.zstd_frames);
  put(unshuffles_, header.unshuffles);
  put(plane_places_, header.plane_places);
  put(gathers, header.gathers);
  put(decode_after, header.decode_after);
  put(assemble_after, header.assemble_after);
  return Program(std::move(bytes));
}

bool fits(const DecodePlan& plan, const AreaSizes& sizes) {
  return plan.planes <= sizes.planes && plan.literals <= sizes.literals &&
         plan.runs <= sizes.runs && plan.run_index <= sizes.run_index;
}

Work work_of_round(const Program& program, const Round& round, const std::uint8_t* tables,
                   Work work) {
  const ProgramHeader& header = program.header();
  const auto rows = [&]<class Row>(const ProgramHeader::Table& table, const Round::Rows& range,
                                   const Row*& where) {
    where = reinterpret_cast<const Row*>(tables + table.offset) + range.first;
  };
  rows(header.lz4_streams, round.lz4_streams, work.lz4_streams);
  rows(header.deflate_streams, round.deflate_streams, work.deflate_streams);
  rows(header.zstd_blocks, round.zstd_blocks, work.zstd_blocks);
  rows(header.zstd_frames, round.zstd_frames, work.zstd_frames);
  rows(header.unshuffles, round.unshuffles, work.unshuffles);
  rows(header.plane_places, round.plane_places, work.plane_places);
  work.status += round.chunks.first;
  return work;
}

AssemblyWork work_of_assembly(const Program& program, const std::uint8_t* tables,
                              AssemblyWork work) {
  work.gathers = reinterpret_cast<const Gather*>(tables + program.header().gathers.offset);
  work.gather_count = static_cast<std::uint32_t>(program.header().gathers.rows);
  return work;
}

}  // namespace batchfs::gpu
