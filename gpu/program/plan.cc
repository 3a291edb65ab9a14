#include "gpu/program/plan.h"

#include <algorithm>
#include <cstring>

#include "engine/base/rounding.h"

namespace batchfs::gpu {

namespace {

constexpr std::uint64_t kPlaneAlignment = 16;

}  // namespace

struct DecodePlan::Mark {
  std::size_t streams, deflate_streams, blocks, frames, rows, places;
  std::uint64_t planes, literals, runs, run_index;
};

DecodePlan::Mark DecodePlan::mark() const {
  return {lz4_streams.size(),
          deflate_streams.size(),
          zstd_blocks.size(),
          zstd_frames.size(),
          unshuffles.size(),
          plane_places.size(),
          planes,
          literals,
          runs,
          run_index};
}

Verdict DecodePlan::planned(Verdict verdict, const Mark& before) {
  if (verdict == Verdict::planned) {
    ++chunks_;
    return verdict;
  }
  lz4_streams.resize(before.streams);
  deflate_streams.resize(before.deflate_streams);
  zstd_blocks.resize(before.blocks);
  zstd_frames.resize(before.frames);
  unshuffles.resize(before.rows);
  plane_places.resize(before.places);
  planes = before.planes;
  literals = before.literals;
  runs = before.runs;
  run_index = before.run_index;
  return verdict;
}

Verdict DecodePlan::add_blosc(Bytes chunk, std::uint64_t source, std::uint64_t target,
                              std::uint64_t size) {
  const Mark before = mark();
  return planned(blosc(chunk, source, target, size), before);
}

Verdict DecodePlan::add_zstd(Bytes chunk, std::uint64_t source, std::uint64_t target,
                             std::uint64_t size, std::uint32_t item) {
  if (!can_unshuffle(size, item)) return Verdict::unsupported;
  const Mark before = mark();
  return planned(zstd(chunk, source, shuffled_target(target, size, item), size), before);
}

Verdict DecodePlan::add_lz4(Bytes chunk, std::uint64_t source, std::uint64_t target,
                            std::uint64_t size, std::uint32_t item) {
  std::uint32_t stored_size = 0;
  if (chunk.size() < sizeof stored_size) return Verdict::damaged;
  std::memcpy(&stored_size, chunk.data(), sizeof stored_size);
  if (stored_size != size) return Verdict::damaged;
  if (!can_unshuffle(size, item)) return Verdict::unsupported;
  const Mark before = mark();
  return planned(lz4_stream(source + sizeof stored_size, chunk.size() - sizeof stored_size,
                            shuffled_target(target, size, item), size),
                 before);
}

Verdict DecodePlan::add_deflate(Bytes chunk, DeflateFormat format, std::uint64_t source,
                                std::uint64_t target, std::uint64_t size, std::uint32_t item) {
  if (!can_unshuffle(size, item)) return Verdict::unsupported;
  const Mark before = mark();
  return planned(
      deflate_stream(source, chunk.size(), format, shuffled_target(target, size, item), size),
      before);
}

Verdict DecodePlan::add_raw(Bytes chunk, std::uint64_t source, std::uint64_t target,
                            std::uint64_t size, std::uint32_t item) {
  if (chunk.size() != size) return Verdict::damaged;
  if (item == 0 || !can_unshuffle(size, item)) return Verdict::unsupported;
  const Mark before = mark();
  unshuffle({Area::source, source}, target, size, item);
  return planned(Verdict::planned, before);
}

Verdict DecodePlan::lz4_stream(std::uint64_t source, std::uint64_t source_size, Place target,
                               std::uint64_t size) {
  if (size > kMaxStream || source_size > kMaxStream) return Verdict::unsupported;
  if (source_size == 0 || size == 0) return Verdict::damaged;
  Lz4Stream stream;
  stream.source = source;
  stream.source_size = static_cast<std::uint32_t>(source_size);
  stream.target = target;
  stream.size = static_cast<std::uint32_t>(size);
  stream.runs = runs;
  stream.run_index = run_index;
  stream.chunk = chunks_;
  lz4_streams.push_back(stream);
  runs += max_lz4_runs(source_size);
  run_index += indexed(size);
  return Verdict::planned;
}

Verdict DecodePlan::deflate_stream(std::uint64_t source, std::uint64_t source_size,
                                   DeflateFormat format, Place target, std::uint64_t size) {
  if (size > kMaxStream || source_size > kMaxStream) return Verdict::unsupported;
  if (source_size == 0 || size == 0) return Verdict::damaged;
  DeflateStream stream;
  stream.source = source;
  stream.source_size = static_cast<std::uint32_t>(source_size);
  stream.target = target;
  stream.size = static_cast<std::uint32_t>(size);
  stream.runs = runs;
  stream.run_index = run_index;
  stream.chunk = chunks_;
  stream.format = format;
  deflate_streams.push_back(stream);
  runs += max_deflate_runs(stream.size);
  run_index += indexed(size);
  return Verdict::planned;
}

bool DecodePlan::can_unshuffle(std::uint64_t size, std::uint32_t item) const {
  return size <= kMaxStream && item <= 255;
}

/// Adds a row for a stretch that is shuffled by items of `item` bytes, or not if that is 1.
void DecodePlan::unshuffle(Place from, std::uint64_t target, std::uint64_t size,
                           std::uint32_t item) {
  Unshuffle row;
  row.target = target;
  row.size = static_cast<std::uint32_t>(size);
  row.planes = static_cast<std::uint32_t>(plane_places.size());
  row.item = static_cast<std::uint16_t>(item);
  row.order = item > 1 ? Order::shuffled : Order::copied;
  row.chunk = chunks_;
  plane_places.push_back(from);
  unshuffle(row);
}

/// Where the bytes of a stream go that belong at `target` once they are unshuffled.
Place DecodePlan::shuffled_target(std::uint64_t target, std::uint64_t size, std::uint32_t item) {
  if (item <= 1) return {Area::target, target};
  const Place shuffled = new_planes(size);
  unshuffle(shuffled, target, size, item);
  return shuffled;
}

void DecodePlan::unshuffle(Unshuffle row) {
  if (row.size == 0) return;
  unshuffles.push_back(row);
  longest_unshuffle = std::max(longest_unshuffle, row.size);
}

Place DecodePlan::new_planes(std::uint64_t size) {
  const Place place{Area::planes, planes};
  planes += round_up<std::uint64_t>(size, kPlaneAlignment);
  return place;
}

void DecodePlan::finish() {
  const auto is_longer = [](const auto& a, const auto& b) { return a.source_size > b.source_size; };
  std::stable_sort(lz4_streams.begin(), lz4_streams.end(), is_longer);
  std::stable_sort(deflate_streams.begin(), deflate_streams.end(), is_longer);
}

void DecodePlan::clear() { *this = DecodePlan(); }

}  // namespace batchfs::gpu
