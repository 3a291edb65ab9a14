#include "tools/planning/batch_explanation.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/pipeline/chunks/kept_arrays.h"
#include "engine/store/cache/disk_cache.h"
#include "engine/view/plan/batch_planner.h"

namespace batchfs {

namespace {

/// Boxes of later batches that are looked at.
constexpr std::int64_t kMaxLaterBoxes = 1 << 20;

using Numbers = std::unordered_map<ChunkKey, std::size_t, ChunkKeyHash>;

const Array& array_of(const View& view, std::uint32_t variable) {
  return *view.variables()[variable]->array;
}

/// The chunks of a batch, in the order of its plan.
struct Chunks {
  struct Need {
    std::uint32_t variable;
    std::int64_t chunk;
    ShortBox box;  // in chunk coordinates
  };
  std::vector<Need> all;
  Numbers numbers;  // in `all`
  TakenParts taken;
};

Chunks chunks_of(const View& view, std::int64_t epoch, std::int64_t batch) {
  Chunks chunks;
  for (ChunkWalk& walk : chunk_walks(view, epoch, batch))
    while (const auto each = walk.next()) {
      const Array& array = array_of(view, each->variable);
      const auto [it, is_new] =
          chunks.numbers.try_emplace(ChunkKey{&array, each->chunk}, chunks.all.size());
      if (is_new) chunks.all.push_back({each->variable, each->chunk, each->box});
      ShortBox& need = chunks.all[it->second].box;
      if (!is_new) need = bounding_box(need, each->box);
      if (!ChunkCache::is_worth_keeping(array)) continue;
      if (is_new) chunks.taken.chunks += ChunkCache::memory_of_all(1, array.chunk_bytes());
      chunks.taken.parts +=
          static_cast<double>(each->box.elements()) * static_cast<double>(array.type().itemsize);
    }
  return chunks;
}

/// Reads an element of each array of which parts of a chunk can be decoded. The engine chooses by the
/// size of blocks, which it knows from the first chunk that it decodes of an array.
void learn_blocks(const View& view, const Chunks& chunks) {
  constexpr int kTries = 3;  // chunks of an array: some may be missing
  std::map<const Array*, int> tried;
  for (const Chunks::Need& need : chunks.all) {
    const Array& array = array_of(view, need.variable);
    if (array.chain().is_plain() || !array.chain().has_ranges() || array.largest_block() != 0 ||
        ++tried[&array] > kTries)
      continue;
    const Dims chunk = array.grid().chunk(need.chunk);
    Box element{need.box.start, Dims(chunk.size(), 1)};
    for (std::size_t d = 0; d < chunk.size(); ++d)
      element.start[d] += chunk[d] * array.grid().chunk_shape()[d];
    std::vector<std::byte> value(array.type().itemsize);
    try {
      array.read(element, value.data());
    } catch (const Error&) {  // the list shows which chunks cannot be found
    }
  }
}

/// The boxes that the batch and those that join it take of each of the batch's chunks.
std::vector<std::vector<Box>> wanted_boxes(const View& view, std::int64_t epoch, std::int64_t batch,
                                           std::int64_t joined, const Chunks& chunks) {
  std::vector<std::vector<Box>> wanted;
  for (const Chunks::Need& need : chunks.all) wanted.push_back({need.box});
  std::int64_t visits = 0;
  for (std::int64_t next = batch + 1; next < std::min(batch + joined, view.batches()); ++next) {
    std::map<std::size_t, Box> of_batch;
    for (ChunkWalk& walk : chunk_walks(view, epoch, next))
      while (const auto each = walk.next()) {
        if (++visits > kMaxLaterBoxes) return wanted;
        const auto it = chunks.numbers.find(ChunkKey{&array_of(view, each->variable), each->chunk});
        if (it == chunks.numbers.end()) continue;
        const auto [box, is_new] = of_batch.try_emplace(it->second, each->box);
        if (!is_new) box->second = bounding_box(box->second, each->box);
      }
    for (auto& [number, box] : of_batch) wanted[number].push_back(std::move(box));
  }
  return wanted;
}

/// Decides how a chunk is decoded and fetched, and how many bytes that takes.
void decide(const Array& array, const ViewCost& cost, std::span<const Box> wanted,
            std::size_t later, bool keeps, ExplainedChunk& chunk) {
  chunk.decoding = choose_decoding(array, chunk.chunk, chunk.need, wanted, later, keeps);
  const Box& box = chunk.decoding.box;
  if (chunk.from == ExplainedChunk::From::missing) {
    chunk.fetched = 0;
    chunk.decoded = static_cast<std::uint64_t>(box.elements()) * array.type().itemsize;
    return;
  }
  const auto others = static_cast<std::size_t>(
      std::ranges::count_if(wanted, [&box](const Box& other) { return !contains(box, other); }));
  chunk.fetching = choose_fetching(array, chunk.chunk, box, 1 + others + later, nullptr);
  const bool in_pieces = chunk.fetching.in_pieces;
  chunk.in_part = is_decoded_in_part(array, box, in_pieces);
  chunk.decoded = decoded_bytes(array, box, in_pieces);
  const bool is_plain = array.chain().is_plain();
  if (is_plain) {
    chunk.fetched = static_cast<double>(array.run_bytes(box));
    chunk.fetched_known = true;
    return;
  }
  // From a local store the stored blocks of a part are read.
  const bool fetches_part = in_pieces || (chunk.in_part && array.store().is_local());
  const std::optional<std::uint64_t> size = chunk.place ? chunk.place->size : std::nullopt;
  const std::optional<double>& measured = cost.stored_chunk_bytes[chunk.variable];
  const double whole = size       ? static_cast<double>(*size)
                       : measured ? *measured
                                  : static_cast<double>(stored_bytes(array, box, false));
  chunk.fetched_known = size.has_value() && !fetches_part;
  chunk.fetched = fetches_part ? whole * static_cast<double>(array.run_bytes(box)) /
                                     static_cast<double>(array.chunk_bytes())
                               : whole;
}

void add(const ExplainedChunk& chunk, BatchExplanation::Totals& totals) {
  if (chunk.from == ExplainedChunk::From::missing)
    ++totals.missing;
  else
    ++(chunk.in_part ? totals.in_part : totals.whole);
  totals.fetched += chunk.fetched;
  totals.fetched_known = totals.fetched_known && chunk.fetched_known;
  totals.decoded += static_cast<double>(chunk.decoded);
}

/// Does the disk cache hold what is fetched of the chunk? Which pieces of it does is not known.
bool is_chunk_on_disk(const Array& array, const ExplainedChunk& chunk) {
  if (!chunk.place || chunk.fetching.in_pieces) return false;
  ByteRange range;
  if (chunk.place->in_shard) range = {chunk.place->offset, *chunk.place->size};
  const Box& box = chunk.decoding.box;
  if (array.chain().is_plain() && array.run_bytes(box) < array.chunk_bytes()) {
    const Dims strides = c_strides(array.grid().chunk_shape(), array.type().itemsize);
    range = {chunk.place->offset, array.run_bytes(box)};
    for (std::size_t d = 0; d < strides.size(); ++d)
      range.offset += static_cast<std::uint64_t>(box.start[d] * strides[d]);
  }
  return is_on_disk(array.store(), chunk.place->key, range).value_or(false);
}

/// Explains chunks of the batch, one after the other; knows where the first ones lie.
class Explainer {
 public:
  Explainer(const View& view, const ViewCost& cost, const Chunks& chunks, std::size_t most)
      : view_(view), cost_(cost), chunks_(chunks), places_(std::min(most, chunks.all.size())) {
    std::map<const Array*, StoredPlaces> arrays;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Array& array = array_of(view, chunks.all[i].variable);
      ExplainedChunk& found = places_[i];
      try {
        found.place = arrays.try_emplace(&array, array).first->second.find(chunks.all[i].chunk);
        if (!found.place) found.from = ExplainedChunk::From::missing;
      } catch (const Error& error) {
        found.failure = error.what();
      }
    }
  }

  /// The chunk of this number, if it is decoded for the batch.
  ExplainedChunk explain(std::size_t number, std::span<const Box> wanted, std::size_t later,
                         bool keeps) const {
    const Chunks::Need& need = chunks_.all[number];
    const Array& array = array_of(view_, need.variable);
    ExplainedChunk chunk = number < places_.size() ? places_[number] : ExplainedChunk();
    chunk.variable = need.variable;
    chunk.chunk = need.chunk;
    chunk.need = need.box;
    chunk.taken = static_cast<double>(chunk.need.elements()) /
                  static_cast<double>(whole_chunk(array, chunk.chunk).elements());
    decide(array, cost_, wanted, later, keeps, chunk);
    if (chunk.from == ExplainedChunk::From::store && is_chunk_on_disk(array, chunk))
      chunk.from = ExplainedChunk::From::disk_cache;
    return chunk;
  }
  std::size_t listed() const { return places_.size(); }

 private:
  const View& view_;
  const ViewCost& cost_;
  const Chunks& chunks_;
  std::vector<ExplainedChunk> places_;  // with what finding them brought
};

/// The chunks as a reader finds them that reads the epoch in order. Lists the first.
BatchExplanation::InOrder explain_in_order(const View& view, const EpochCost& epoch_cost,
                                           const ChunkReuse& reuse, const Explainer& explainer,
                                           bool keeps_whole, const Chunks& chunks,
                                           BatchExplanation& explanation) {
  using Kind = ChunkReuse::Supply::Kind;
  BatchExplanation::InOrder in_order;
  const auto wanted =
      wanted_boxes(view, explanation.epoch, explanation.batch, epoch_cost.rules->joined, chunks);
  for (ChunkReuse::Supply& source : reuse.supplies(*epoch_cost.rules, explanation.batch)) {
    const std::size_t number = chunks.numbers.at(source.chunk);
    // Later epochs find all chunks in memory, where all stay.
    if (source.kind == Kind::decoded && explanation.epoch > 0 && epoch_cost.all_stay)
      source = {source.chunk, Kind::kept, -1, source.later};
    // Each batch reads its own part of an uncompressed local chunk, joined or not.
    std::span<const Box> shared = wanted[number];
    if (!ChunkCache::is_worth_keeping(*source.chunk.array)) {
      source = {source.chunk, Kind::decoded, explanation.batch, 0};
      shared = shared.first(1);
    }
    ExplainedChunk chunk = explainer.explain(
        number, shared, source.later, keeps_whole || (source.later > 0 && epoch_cost.all_stay));
    if (source.kind == Kind::decoded) {
      in_order.on_disk += chunk.from == ExplainedChunk::From::disk_cache ? 1 : 0;
      add(chunk, in_order.read);
    } else {
      ++(source.kind == Kind::joined ? in_order.joined : in_order.kept);
      chunk.from = ExplainedChunk::From::memory;
    }
    chunk.source = source;
    if (number < explainer.listed()) explanation.listed[number] = std::move(chunk);
  }
  return in_order;
}

}  // namespace

BatchExplanation explain_batch(const View& view, std::int64_t epoch, std::int64_t batch,
                               const ViewCost& cost, const EpochCost& epoch_cost,
                               std::size_t most) {
  BatchExplanation explanation{.epoch = epoch, .batch = batch};
  explanation.samples = view.sample_count(batch);
  const Chunks chunks = chunks_of(view, epoch, batch);
  explanation.chunks = static_cast<std::int64_t>(chunks.all.size());
  learn_blocks(view, chunks);
  const Explainer explainer(view, cost, chunks, most);
  const KeepChoice keep = choose_keeping(
      view, epoch, batch, [&chunks] { return chunks.taken; },
      [&view] { return KeptArrays::bytes_of(view); },
      [&] { return cost.view_bytes <= epoch_cost.kept; });
  for (std::size_t number = 0; number < chunks.all.size(); ++number) {
    const Box need = chunks.all[number].box;
    ExplainedChunk chunk = explainer.explain(number, {&need, 1}, 0, keep.whole);
    add(chunk, explanation.alone);
    if (number < explainer.listed()) explanation.listed.push_back(std::move(chunk));
  }
  if (!epoch_cost.rules) return explanation;
  if (const auto reuse = follow_epoch(view, epoch))
    explanation.in_order =
        explain_in_order(view, epoch_cost, *reuse, explainer, keep.whole, chunks, explanation);
  return explanation;
}

}  // namespace batchfs
