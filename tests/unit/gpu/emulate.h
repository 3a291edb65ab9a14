#pragma once
// Runs a plan on the host with the kernels' own code, block after block, in memory of exactly the planned
// sizes, poisoned first.

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "gpu/lz4.cuh"
#include "gpu/plan.h"
#include "gpu/unshuffle.cuh"
#include "gpu/zstd.cuh"

namespace batchfs::gpu {

struct Emulated {
  std::vector<std::uint8_t> target;
  std::vector<std::uint32_t> status;
};

/// Decodes the chunks of `plan`, whose source area is `source`. The tile is small so that even short
/// streams have several.
template <int kThreads = 64, int kTile = 512>
Emulated emulate(DecodePlan& plan, const std::vector<std::uint8_t>& source, std::uint64_t target_size) {
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
  work.zstd_blocks = plan.zstd_blocks.data();
  work.zstd_results = results.data();
  work.zstd_frames = plan.zstd_frames.data();
  work.unshuffles = plan.unshuffles.data();
  work.plane_places = plan.plane_places.data();

  const auto lz4 = std::make_unique<Lz4Shared<kThreads, kTile>>();
  for (std::uint32_t i = 0; i < plan.lz4_streams.size(); ++i) lz4_stream(*lz4, work, i);
  const auto entropy = std::make_unique<ZstdEntropyShared>();
  for (const EntropyPart part : {EntropyPart::literals, EntropyPart::sequences})
    for (std::uint32_t i = 0; i < plan.zstd_blocks.size(); ++i) zstd_block(*entropy, work, i, part);
  const auto copy = std::make_unique<CopyShared<kThreads, kTile>>();
  for (std::uint32_t i = 0; i < plan.zstd_frames.size(); ++i) zstd_frame(*copy, work, i);
  for (std::uint32_t i = 0; i < plan.zstd_frames.size(); ++i) zstd_checksum(work, i);
  for (std::uint32_t i = 0; i < plan.unshuffles.size(); ++i)
    for (std::uint32_t slice = 0; slice < slices(plan.longest_unshuffle); ++slice)
      unshuffle_slice<kThreads>(work, i, slice);
  return result;
}

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
    f = kind == Data::packed ? 200.0f + static_cast<float>(static_cast<int>((value - 200.0f) / 0.003f)) * 0.003f : value;
  }
  switch (kind) {
    case Data::noise:
      for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
      break;
    case Data::zeros: break;
    case Data::text: {
      const char* words[] = {"chunk ", "shard ", "codec ", "the ", "of ", "batch ", "window ", "epoch\n"};
      for (std::size_t at = 0; at < size;) {
        const char* word = words[random() % 8];
        for (; *word != 0 && at < size; ++word) bytes[at++] = static_cast<std::uint8_t>(*word);
      }
      break;
    }
    case Data::floats:
    case Data::packed: std::copy_n(reinterpret_cast<const std::uint8_t*>(field.data()), size, bytes.begin()); break;
    case Data::ramp:
      for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i / 4 >> 8 * (i % 4));
      break;
    case Data::repeats:  // long matches that overlap themselves, at every distance
      for (std::size_t at = 0; at < size;) {
        const std::size_t distance = 1 + random() % 40, length = 1 + random() % 900;
        const bool fresh = at < distance || random() % 4 == 0;
        for (std::size_t k = 0; k < length && at < size; ++k, ++at)
          bytes[at] = fresh && k < distance ? static_cast<std::uint8_t>(random()) : at >= distance ? bytes[at - distance] : 0;
      }
      break;
  }
  return bytes;
}

inline std::span<const std::byte> as_bytes(const std::vector<std::uint8_t>& bytes) {
  return std::as_bytes(std::span<const std::uint8_t>(bytes));
}

}  // namespace batchfs::gpu
