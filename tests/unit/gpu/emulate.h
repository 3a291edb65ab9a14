#pragma once
// Runs a plan on the host with the kernels' own code, block after block, in memory of exactly the
// planned sizes, poisoned first.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gpu/kernels/assembly.cuh"
#include "gpu/kernels/deflate.cuh"
#include "gpu/kernels/lz4.cuh"
#include "gpu/kernels/unshuffle.cuh"
#include "gpu/kernels/zstd.cuh"
#include "gpu/program/plan.h"
#include "gpu/program/program.h"

namespace batchfs::gpu {

struct Emulated {
  std::vector<std::uint8_t> target;
  std::vector<std::uint32_t> status;
};

/// Runs the kernels that the device launches for a plan or a round.
template <int kThreads, int kTile>
void run_kernels(const Work& work, std::size_t lz4_streams, std::size_t deflate_streams,
                 std::size_t zstd_blocks, std::size_t zstd_frames, std::size_t unshuffles,
                 std::uint32_t longest_unshuffle) {
  const auto lz4 = std::make_unique<Lz4Shared<kThreads, kTile>>();
  for (std::uint32_t i = 0; i < lz4_streams; ++i) lz4_stream(*lz4, work, i);
  const auto deflate = std::make_unique<DeflateShared<kThreads, kTile>>();
  for (std::uint32_t i = 0; i < deflate_streams; ++i) deflate_stream(*deflate, work, i);
  const auto entropy = std::make_unique<ZstdEntropyShared>();
  const auto blocks = static_cast<std::uint32_t>(zstd_blocks);
  for (std::uint32_t i = 0; i < blocks; ++i) zstd_literals(entropy->huffman, work, i);
  for (std::uint32_t i = 0; i < sequence_groups(blocks); ++i)
    zstd_sequences(entropy->sequences, work, i, blocks);
  const auto copy = std::make_unique<CopyShared<kThreads, kTile>>();
  for (std::uint32_t i = 0; i < zstd_frames; ++i) zstd_frame(*copy, work, i);
  for (std::uint32_t i = 0; i < zstd_frames; ++i) zstd_checksum(work, i);
  for (std::uint32_t i = 0; i < unshuffles; ++i)
    for (std::uint32_t slice = 0; slice < slices(longest_unshuffle); ++slice)
      unshuffle_slice<kThreads>(work, i, slice);
}

/// Decodes the chunks of `plan`, whose source area is `source`. The tile is small, so that even
/// short streams have several.
template <int kThreads = 64, int kTile = 512>
Emulated emulate(DecodePlan& plan, const std::vector<std::uint8_t>& source,
                 std::uint64_t target_size) {
  plan.finish();
  Emulated result;
  result.target.assign(target_size, 0xcd);
  result.status.assign(plan.chunks(), kDecoded);
  std::vector<std::uint8_t> planes(plan.planes, 0xcd), literals(plan.literals, 0xcd);
  std::vector<Run> runs(plan.runs, Run{0xcdcdcdcd, 0xcdcdcdcd});
  std::vector<std::uint32_t> run_index(plan.run_index, 0xcdcdcdcd);
  std::vector<ZstdBlockResult> results(plan.zstd_blocks.size());
  Work work;
  work.source = source.data();
  work.planes = planes.data();
  work.target = result.target.data();
  work.literals = literals.data();
  work.runs = runs.data();
  work.run_index = run_index.data();
  work.status = result.status.data();
  work.lz4_streams = plan.lz4_streams.data();
  work.deflate_streams = plan.deflate_streams.data();
  work.zstd_blocks = plan.zstd_blocks.data();
  work.zstd_results = results.data();
  work.zstd_frames = plan.zstd_frames.data();
  work.unshuffles = plan.unshuffles.data();
  work.plane_places = plan.plane_places.data();

  run_kernels<kThreads, kTile>(work, plan.lz4_streams.size(), plan.deflate_streams.size(),
                               plan.zstd_blocks.size(), plan.zstd_frames.size(),
                               plan.unshuffles.size(), plan.longest_unshuffle);
  return result;
}

/// The device's memory, on the host: runs programs one after the other.
class HostRunner {
 public:
  HostRunner(const AreaSizes& sizes, std::span<const Conversion> conversions,
             std::span<const std::byte> constants)
      : sizes_(sizes), conversions_(conversions.begin(), conversions.end()) {
    const auto fill = [](auto& area, std::size_t size) {
      area = std::make_unique_for_overwrite<std::remove_reference_t<decltype(area[0])>[]>(size);
    };
    fill(staging_, sizes.staging);
    fill(source_, sizes.source);
    fill(planes_, sizes.planes);
    fill(literals_, sizes.literals);
    fill(runs_, sizes.runs);
    fill(run_index_, sizes.run_index);
    fill(target_, sizes.target);
    fill(batch_, sizes.batch);
    fill(constants_, constants.size());
    std::memset(batch_.get(), 0xcd, sizes.batch);
    std::memset(target_.get(), 0xcd, sizes.target);
    std::memcpy(constants_.get(), constants.data(), constants.size());
  }

  std::byte* staging() { return reinterpret_cast<std::byte*>(staging_.get()); }
  const std::byte* batch() const { return reinterpret_cast<const std::byte*>(batch_.get()); }

  /// Checks and runs a program. Returns the statuses.
  std::vector<std::uint32_t> run(const Program& program) {
    check_program(program, sizes_, conversions_);
    const ProgramHeader& header = program.header();
    for (const CopyRow& row : program.table<CopyRow>(header.copies))
      std::memcpy((row.area == Area::source ? source_ : target_).get() + row.offset,
                  staging_.get() + row.staging, row.size);
    std::vector<std::uint32_t> statuses(header.chunks, kDecoded);
    const auto* tables = reinterpret_cast<const std::uint8_t*>(program.bytes().data());
    std::vector<ZstdBlockResult> results(header.zstd_blocks.rows);
    for (const Round& round : program.table<Round>(header.rounds)) {
      Work work;
      work.source = source_.get();
      work.planes = planes_.get();
      work.target = target_.get();
      work.literals = literals_.get();
      work.runs = runs_.get();
      work.run_index = run_index_.get();
      work.status = statuses.data();
      work.zstd_results = results.data();
      run_kernels<64, 512>(work_of_round(program, round, tables, work), round.lz4_streams.count,
                           round.deflate_streams.count, round.zstd_blocks.count,
                           round.zstd_frames.count, round.unshuffles.count,
                           round.longest_unshuffle);
    }
    AssemblyWork work;
    work.chunks = target_.get();
    work.constants = constants_.get();
    work.batch = batch_.get();
    work.conversions = conversions_.data();
    work = work_of_assembly(program, tables, work);
    for (std::uint32_t slice = 0; slice < header.slices; ++slice) gather_slice<64>(work, slice);
    return statuses;
  }

 private:
  AreaSizes sizes_;
  std::vector<Conversion> conversions_;
  std::unique_ptr<std::uint8_t[]> staging_, source_, planes_, literals_, target_, batch_,
      constants_;
  std::unique_ptr<Run[]> runs_;
  std::unique_ptr<std::uint32_t[]> run_index_;
};

/// Data of the kinds that decoders meet.
enum class Data { noise, zeros, text, floats, packed, ramp, repeats };
inline constexpr Data kAllData[] = {Data::noise,  Data::zeros, Data::text,   Data::floats,
                                    Data::packed, Data::ramp,  Data::repeats};

inline std::vector<std::uint8_t> make_data(Data kind, std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(size);
  std::vector<float> field(size / 4 + 1);
  float value = 280;
  for (auto& f : field) {
    value += (static_cast<float>(random() % 2001) - 1000.0f) * 1e-4f;
    // GRIB's packing: a 16-bit integer times a scale plus an offset.
    f = kind == Data::packed
            ? 200.0f + static_cast<float>(static_cast<int>((value - 200.0f) / 0.003f)) * 0.003f
            : value;
  }
  switch (kind) {
    case Data::noise:
      for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
      break;
    case Data::zeros:
      break;
    case Data::text: {
      const char* words[] = {"chunk ", "shard ", "codec ",  "the ",
                             "of ",    "batch ", "window ", "epoch\n"};
      for (std::size_t at = 0; at < size;) {
        const char* word = words[random() % 8];
        for (; *word != 0 && at < size; ++word) bytes[at++] = static_cast<std::uint8_t>(*word);
      }
      break;
    }
    case Data::floats:
    case Data::packed:
      std::copy_n(reinterpret_cast<const std::uint8_t*>(field.data()), size, bytes.begin());
      break;
    case Data::ramp:
      for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::uint8_t>(i / 4 >> 8 * (i % 4));
      break;
    case Data::repeats:  // long matches that overlap themselves, at every distance
      for (std::size_t at = 0; at < size;) {
        const std::size_t distance = 1 + random() % 40, length = 1 + random() % 900;
        const bool fresh = at < distance || random() % 4 == 0;
        for (std::size_t k = 0; k < length && at < size; ++k, ++at)
          bytes[at] = fresh && k < distance ? static_cast<std::uint8_t>(random())
                      : at >= distance      ? bytes[at - distance]
                                            : 0;
      }
      break;
  }
  return bytes;
}

inline std::span<const std::byte> as_bytes(const std::vector<std::uint8_t>& bytes) {
  return std::as_bytes(std::span<const std::uint8_t>(bytes));
}

}  // namespace batchfs::gpu
