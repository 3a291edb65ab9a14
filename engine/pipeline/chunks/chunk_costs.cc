#include "engine/pipeline/chunks/chunk_costs.h"

#include "engine/store/store.h"

namespace batchfs {

namespace {

/// The share of a chunk that a block takes, where nothing is known.
constexpr double kUsualBlockShare = 0.05;
/// Stored bytes to decoded ones, where nothing is known.
constexpr double kUsualRatio = 0.5;

double share(const Array& array, const Box& box) {
  return static_cast<double>(array.run_bytes(box)) / static_cast<double>(array.chunk_bytes());
}

/// A part costs somewhat more than its share of a chunk: codecs decode in blocks, and a part hardly
/// begins and ends with one.
double block_share(const Array& array) {
  const std::uint64_t block = array.largest_block();
  return block == 0 ? kUsualBlockShare
                    : static_cast<double>(block) / static_cast<double>(array.chunk_bytes());
}

}  // namespace

Box needed(const Assembly& assembly, const Assembly::Use& use) {
  const auto parts = assembly.parts_of(use);
  Box box = parts.front().source;
  for (const Assembly::Part& part : parts.subspan(1)) box = bounding_box(box, part.source);
  return box;
}

Box whole_chunk(const Array& array, std::int64_t chunk) {
  return whole_box(array.grid().box(array.grid().chunk(chunk)).shape);
}

Box box_to_decode(const Array& array, std::int64_t chunk, const Box& need,
                  std::span<const Box> wanted, std::size_t later, bool keeps) {
  const bool plain = array.chain().is_plain();
  if (!plain && (!array.chain().has_ranges() || need.empty())) return whole_chunk(array, chunk);
  // In units of the whole chunk.
  const double extra = plain ? 0 : block_share(array);
  const auto cost = [&](const Box& box) { return share(array, box) + extra; };
  Box all = need;
  double parts = wanted.empty() ? cost(need) : 0;
  for (const Box& box : wanted) {
    all = bounding_box(all, box);
    parts += cost(box);
  }
  // What is used again and can be kept for good serves uses beyond those that are known, too.
  const double again = static_cast<double>(later) * cost(need);
  if (!plain && (parts + again >= 0.9 || keeps)) return whole_chunk(array, chunk);
  return cost(all) <= parts ? all : need;
}

bool fetches_pieces(const Array& array, std::int64_t chunk, const Box& box, std::size_t uses,
                    const EncodedChunk* known) {
  if (array.chain().is_plain() || !array.chain().has_ranges() || box == whole_chunk(array, chunk))
    return false;
  const std::optional<Store::Speed> speed = array.store().speed();
  if (!speed) return false;
  // All in bytes: a request costs what the network could have carried while it takes one of the
  // places for requests.
  const double request = speed->latency * speed->rate / speed->in_flight;
  const bool knows_layout = known != nullptr && !known->pieces.empty();
  const double whole = knows_layout ? static_cast<double>(known->stored_size)
                                    : static_cast<double>(array.chunk_bytes()) * kUsualRatio;
  // Each use takes pieces of its own, in the worst case; the whole would serve them all.
  return static_cast<double>(uses) * (whole * (share(array, box) + block_share(array)) + request) +
             (knows_layout ? 0 : request) <
         whole + request;
}

std::uint64_t stored_bytes(const Array& array, const Box& need, bool in_pieces) {
  if (array.chain().is_plain()) return array.run_bytes(need);
  // Before anything is known, no less than what an array that hardly compresses takes: many chunks
  // are fetched at once, and memory must not be found missing when they come.
  const std::uint64_t largest = array.largest_stored();
  const std::uint64_t whole =
      array.chain().encoded_size().value_or(largest != 0 ? largest : array.chunk_bytes());
  return in_pieces ? static_cast<std::uint64_t>(static_cast<double>(whole) * share(array, need))
                   : whole;
}

}  // namespace batchfs
