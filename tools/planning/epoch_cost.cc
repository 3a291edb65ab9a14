#include "tools/planning/epoch_cost.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "engine/pipeline/chunks/boxes.h"
#include "engine/pipeline/chunks/chunk_costs.h"
#include "engine/pipeline/prefetch/look_ahead.h"
#include "engine/pipeline/prefetch/prefetcher.h"
#include "engine/view/plan/batch_planner.h"

namespace batchfs {

namespace {

/// The share of a chunk that a batch takes.
struct Taken {
  ChunkKey chunk;
  Box spanned;
  std::int64_t first = 0;  // elements that no batch and no box took before, at least
};

bool has_parts(const Array& array) {
  return array.chain().has_ranges() || array.chain().is_plain();
}

ChunkReuse::Use use_of(const Array& array, const Taken& taken) {
  const std::uint64_t whole = array.chunk_bytes();
  const bool stays = ChunkCache::is_worth_keeping(array);
  ChunkReuse::Use use{.chunk = taken.chunk, .decoded = static_cast<double>(whole)};
  if (stays) use.memory = ChunkCache::memory_of_all(1, whole);
  if (!has_parts(array)) return use;
  use.part = static_cast<double>(taken.first) * static_cast<double>(array.type().itemsize);
  const std::uint64_t run = array.run_bytes(taken.spanned);
  if (!stays) {
    // More than half of a chunk is read as the whole.
    if (run <= whole / 2) use.decoded = static_cast<double>(run);
  } else if (run < whole) {
    // The part may be decoded before it is known that others need the rest: see choose_decoding().
    use.more = std::min(static_cast<double>(run), kMaxPartCost * static_cast<double>(whole));
  }
  return use;
}

/// Boxes of the chunks that are disjoint: their elements are decoded at least.
class DisjointBoxes {
 public:
  /// Returns the elements of the box, or 0 where it overlaps an earlier one.
  std::int64_t add(const ChunkKey& chunk, const Box& box) {
    constexpr std::size_t kMost = 128;  // boxes
    std::vector<Box>& boxes = boxes_[chunk];
    if (boxes.size() == kMost || std::ranges::any_of(boxes, [&box](const Box& other) {
          return !intersection(box, other).empty();
        }))
      return 0;
    boxes.push_back(box);
    return box.elements();
  }

 private:
  std::unordered_map<ChunkKey, std::vector<Box>, ChunkKeyHash> boxes_;
};

/// Batches behind the reader in which chunks may still be found: opened ones that are kept.
constexpr std::int64_t kBehind = 5;

/// The bounds and the estimate, where some chunks do not stay.
void follow_reuse(const View& view, const ViewCost& cost, double budget, const ChunkReuse& reuse,
                  EpochCost& epoch) {
  const bool is_local = reads_locally(view);
  const auto memory = static_cast<std::uint64_t>(budget);
  const auto batch = static_cast<std::uint64_t>(cost.batch_bytes);
  const auto listed = static_cast<std::uint64_t>(batch_memory(cost));
  ChunkReuse::Rules rules;
  // At best each kind of sharing has all of the memory.
  rules.kept = budget - cost.batch_bytes;
  rules.joined = joined_batches(memory, batch) + kBehind;
  EpochCost::Bounds bounds;
  bounds.least = reuse.decoded(rules).least;

  rules.known_batches = LookAhead::kBatches;
  rules.known_uses = LookAhead::kUses;
  const std::uint64_t for_joined = joined_memory(memory, is_local);
  const std::int64_t joined = joined_batches(for_joined, listed);
  const double beside = std::max(0.0, budget - static_cast<double>(for_joined + listed));
  const auto decoded = [&](double kept, std::int64_t joining) {
    rules.kept = kept;
    rules.joined = joining;
    return reuse.decoded(rules);
  };
  // At worst chunks have what batches leave them that join. Or as few join as when all prefetched
  // batches have chunks decoded: those that join are counted from the reader on.
  const auto prefetched = static_cast<std::int64_t>(prefetch_memory(memory, batch, is_local) /
                                                    std::max<std::uint64_t>(batch, 1));
  const std::int64_t surely = joined - std::min(prefetched, Prefetcher::kMaxPrefetch);
  bounds.most =
      std::min(decoded(beside, 1).most, decoded(0, std::max<std::int64_t>(1, surely)).most);
  const double with_kept = decoded(epoch.kept, 1).likely;
  const double likely = std::min(with_kept, decoded(beside, joined).likely);
  if (with_kept == likely) {
    rules.kept = epoch.kept;
    rules.joined = 1;
  }
  epoch.rules = rules;
  epoch.decoded = std::clamp(likely, bounds.least, std::max(bounds.least, bounds.most));
  epoch.bounds = bounds;
}

}  // namespace

EpochCost estimate_epoch(const View& view, const ViewCost& cost, double budget) {
  EpochCost epoch;
  epoch.kept = kept_between_batches(view, cost, budget);
  // Parts of uncompressed chunks of a local store are read anew each time.
  epoch.all_stay = cost.view_bytes <= epoch.kept &&
                   std::ranges::all_of(view.variables(), [](const Variable* variable) {
                     return ChunkCache::is_worth_keeping(*variable->array);
                   });
  const std::optional<ChunkReuse> reuse = cost.lanes > 1 ? std::nullopt : follow_epoch(view);
  if (!reuse) {
    epoch.decoded = epoch_decoded(view, cost, epoch.kept);
  } else if (epoch.all_stay) {
    const double all = std::numeric_limits<double>::infinity();
    const auto joined = reuse->decoded({.kept = all, .joined = kMaxJoined + kBehind});
    epoch.rules = ChunkReuse::Rules{.kept = all};
    const auto once = reuse->decoded(*epoch.rules);
    epoch.bounds = {joined.least, once.most};
    epoch.decoded = std::max(once.likely, joined.least);
  } else {
    follow_reuse(view, cost, budget, *reuse, epoch);
  }
  return epoch;
}

double amplification(const View& view, const ViewCost& cost, const EpochCost& epoch) {
  const double used = cost.used_bytes * static_cast<double>(view.batches());
  return used > 0 ? epoch.decoded / used : 1;
}

std::optional<ChunkReuse> follow_epoch(const View& view, std::int64_t epoch) {
  constexpr std::int64_t kMaxBatches = 8 << 10;
  constexpr std::int64_t kMaxVisits = 1 << 21;
  if (view.batches() > kMaxBatches) return std::nullopt;
  ChunkReuse reuse;
  std::int64_t boxes = 0;
  std::vector<Taken> taken;
  std::unordered_map<ChunkKey, std::size_t, ChunkKeyHash> numbers;
  DisjointBoxes disjoint;
  for (std::int64_t batch = 0; batch < view.batches(); ++batch) {
    taken.clear();
    numbers.clear();
    for (ChunkWalk& walk : chunk_walks(view, epoch, batch))
      while (const auto each = walk.next()) {
        if (++boxes > kMaxVisits) return std::nullopt;
        const Array& array = *view.variables()[each->variable]->array;
        const ChunkKey key{&array, each->chunk};
        const auto [it, is_new] = numbers.try_emplace(key, taken.size());
        if (is_new) taken.push_back({key, each->box});
        if (!has_parts(array)) continue;
        Taken& known = taken[it->second];
        known.spanned = bounding_box(known.spanned, each->box);
        known.first += disjoint.add(key, each->box);
      }
    for (const Taken& each : taken) reuse.use(use_of(*each.chunk.array, each));
    reuse.next_batch();
  }
  return reuse;
}

}  // namespace batchfs
