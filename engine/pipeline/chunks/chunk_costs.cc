#include "engine/pipeline/chunks/chunk_costs.h"

#include <algorithm>
#include <vector>

#include "engine/array/chunk_part.h"
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

/// Decoded bytes of a chunk, from `begin` to before `end`.
struct ByteRun {
  std::uint64_t begin = 0, end = 0;
};

/// The bytes that are decoded for the box: whole blocks.
ByteRun decoded_run(const Array& array, const Box& box) {
  const std::uint64_t chunk = array.chunk_bytes();
  const auto [first, count] = run_of(array.grid().chunk_shape(), box);
  ByteRun run{first * array.type().itemsize, (first + count) * array.type().itemsize};
  if (array.chain().is_plain()) return run;
  if (const std::uint64_t block = array.largest_block(); block != 0) {
    run.begin -= run.begin % block;
    run.end = (run.end + block - 1) / block * block;
  } else {
    run.end += static_cast<std::uint64_t>(kUsualBlockShare * static_cast<double>(chunk));
  }
  run.end = std::min(run.end, chunk);
  return run;
}

/// Returns the cost of the boxes, in units of the whole chunk: blocks that several need are decoded
/// once.
double cost(const Array& array, std::span<const Box> boxes) {
  std::vector<ByteRun> runs;
  for (const Box& box : boxes) runs.push_back(decoded_run(array, box));
  std::sort(runs.begin(), runs.end(),
            [](const ByteRun& a, const ByteRun& b) { return a.begin < b.begin; });
  std::uint64_t sum = 0, end = 0;
  for (const ByteRun& run : runs) {
    if (run.end <= end) continue;
    sum += run.end - std::max(run.begin, end);
    end = run.end;
  }
  return static_cast<double>(sum) / static_cast<double>(array.chunk_bytes());
}

/// Returns `box` extended by the rest of the blocks that are decoded for it: whole steps along its
/// first dimension of more than one element. `box` itself where whole steps would take more blocks.
Box widened(const Array& array, const Box& whole, const Box& box) {
  const Dims& shape = array.grid().chunk_shape();
  std::size_t axis = 0;
  while (axis + 1 < shape.size() && box.shape[axis] == 1) ++axis;
  const Dims strides = c_strides(shape, array.type().itemsize);
  std::uint64_t origin = 0;
  Box wide = box;
  for (std::size_t d = 0; d < axis; ++d)
    origin += static_cast<std::uint64_t>(box.start[d] * strides[d]);
  for (std::size_t d = axis + 1; d < shape.size(); ++d) {
    wide.start[d] = 0;
    wide.shape[d] = whole.shape[d];
  }
  const ByteRun decoded = decoded_run(array, box);
  const auto step = static_cast<std::uint64_t>(strides[axis]);
  const std::uint64_t before = decoded.begin > origin ? decoded.begin - origin : 0;
  const auto first = static_cast<std::int64_t>((before + step - 1) / step);
  const auto last = static_cast<std::int64_t>((decoded.end - origin) / step);
  wide.start[axis] = std::min(box.start[axis], first);
  wide.shape[axis] =
      std::max(box.start[axis] + box.shape[axis], std::min(last, whole.shape[axis])) -
      wide.start[axis];
  const ByteRun run = decoded_run(array, wide);
  // From a remote store, no more blocks than may have been fetched.
  const std::uint64_t size = decoded.end - decoded.begin;
  const std::uint64_t most = array.store().is_local() ? size / 4 * 5 : size;
  return run.end - run.begin > most ? box : wide;
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

DecodeChoice choose_decoding(const Array& array, std::int64_t chunk, const Box& need,
                             std::span<const Box> wanted, std::size_t later, bool keeps) {
  using enum DecodeChoice::Why;
  const bool plain = array.chain().is_plain();
  const Box whole = whole_chunk(array, chunk);
  if (!plain && (!array.chain().has_ranges() || need.empty())) return {whole, only_whole};
  DecodeChoice choice{.box = need, .why = plain ? uncompressed : part_is_less};
  choice.parts = wanted.empty() ? cost(array, {&need, 1}) : cost(array, wanted);
  // A chunk that is used again and can be kept for good also serves uses that are not known yet.
  choice.later = static_cast<double>(later) * cost(array, {&need, 1});
  const auto with = [&choice](Box box, DecodeChoice::Why why) {
    choice.box = std::move(box);
    choice.why = why;
    return choice;
  };
  if (!plain && choice.parts + choice.later >= kMaxPartCost) return with(whole, parts_cost);
  if (!plain && keeps) return with(whole, stays);
  Box all = need;
  for (const Box& box : wanted) all = bounding_box(all, box);
  if (cost(array, {&all, 1}) <= choice.parts) choice.box = std::move(all);
  if (plain || array.largest_block() == 0 || wanted.size() < 2) return choice;
  Box wide = widened(array, whole, choice.box);
  // More than half of a chunk that is not in pieces is decoded as the whole (chunk_part.h).
  if (array.store().is_local() && array.run_bytes(wide) > array.chunk_bytes() / 2)
    return with(whole, most_is_used);
  choice.box = std::move(wide);
  return choice;
}

bool is_decoded_in_part(const Array& array, const Box& box, bool in_pieces) {
  const std::uint64_t run = array.run_bytes(box);
  if (array.chain().is_plain()) return run < array.chunk_bytes();
  return array.chain().has_ranges() && (in_pieces || run <= array.chunk_bytes() / 2);
}

std::uint64_t decoded_bytes(const Array& array, const Box& box, bool in_pieces) {
  return is_decoded_in_part(array, box, in_pieces) ? array.run_bytes(box) : array.chunk_bytes();
}

FetchChoice choose_fetching(const Array& array, std::int64_t chunk, const Box& box,
                            std::size_t uses, const EncodedChunk* known) {
  if (array.chain().is_plain() || !array.chain().has_ranges() || box == whole_chunk(array, chunk))
    return {};
  const std::optional<Store::Speed> speed = array.store().speed();
  if (!speed) return {};
  // All in bytes: a request costs what the network could have carried while the request occupies
  // one of the slots.
  const double request = speed->latency * speed->rate / speed->in_flight;
  const bool knows_layout = known != nullptr && !known->pieces.empty();
  const double whole = knows_layout ? static_cast<double>(known->stored_size)
                                    : static_cast<double>(array.chunk_bytes()) * kUsualRatio;
  // Each use takes pieces of its own, in the worst case; the whole would serve them all.
  FetchChoice choice;
  choice.pieces =
      static_cast<double>(uses) * (whole * (share(array, box) + block_share(array)) + request) +
      (knows_layout ? 0 : request);
  choice.whole = whole + request;
  choice.in_pieces = choice.pieces < choice.whole;
  return choice;
}

std::uint64_t stored_bytes(const Array& array, const Box& need, bool in_pieces) {
  if (array.chain().is_plain()) return array.run_bytes(need);
  // Before any measurement, no less than an array that hardly compresses takes: many chunks are
  // fetched at once, and memory must not run out when they arrive.
  const std::uint64_t largest = array.largest_stored();
  const std::uint64_t whole =
      array.chain().encoded_size().value_or(largest != 0 ? largest : array.chunk_bytes());
  return in_pieces ? static_cast<std::uint64_t>(static_cast<double>(whole) * share(array, need))
                   : whole;
}

}  // namespace batchfs
