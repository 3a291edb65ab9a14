#include "tools/planning/view_cost.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/pipeline/chunks/chunk_reuse.h"
#include "engine/pipeline/prefetch/prefetcher.h"
#include "engine/scan/sweep.h"
#include "engine/view/order/shuffle_quality.h"
#include "engine/view/plan/batch_chunks.h"
#include "engine/view/plan/batch_planner.h"
#include "engine/view/plan/operand_memory.h"
#include "engine/view/rows/reached.h"
#include "engine/view/spec.h"
#include "tools/planning/box_union.h"

namespace batchfs {

namespace {

constexpr std::int64_t kPlannedBatches = 8;
constexpr int kMeasuredChunks = 3;  // per variable
/// Boxes that are compared with each other, at most: of a chunk, and of a batch.
constexpr std::int64_t kMaxBoxes = 4096, kMaxBoxesOfBatch = 1 << 15;

double need(double batch_bytes, double operand_bytes, double decoded_bytes) {
  return 2 * batch_bytes + operand_bytes + decoded_bytes;
}

/// Bytes of all tensors of a batch.
double bytes_of(const View& view, const std::vector<Dims>& shapes) {
  double bytes = 0;
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    bytes += static_cast<double>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
  }
  return bytes;
}

/// Stored bytes per decoded byte of a variable, from a few of its chunks.
class StoredRatio {
 public:
  void measure(const Array& array, std::int64_t linear) {
    if (measured_ == kMeasuredChunks) return;
    ++measured_;
    const Dims chunk = array.grid().chunk(linear);
    try {
      const EncodedChunk encoded = array.fetch(chunk, whole_box(array.grid().chunk_shape()));
      found_ = found_ || !encoded.missing;
      stored_ += static_cast<double>(encoded.bytes.size());
      decoded_ += static_cast<double>(array.chunk_bytes());
    } catch (const Error& error) {
      if (!unreadable_) unreadable_ = error.what();
    }
  }
  /// Why the first chunk that cannot be read cannot; it says nothing about the others.
  const std::optional<std::string>& unreadable() const { return unreadable_; }
  std::optional<double> ratio() const {
    return decoded_ > 0 ? std::optional<double>(stored_ / decoded_) : std::nullopt;
  }
  /// Was each chunk that was looked at missing?
  bool all_missing() const { return decoded_ > 0 && !found_; }

 private:
  int measured_ = 0;
  bool found_ = false;
  double stored_ = 0, decoded_ = 0;
  std::optional<std::string> unreadable_;
};

/// Sums over the planned batches, per variable.
struct VariableSums {
  StoredRatio ratio;
  double chunks = 0, used_elements = 0;
  std::vector<double> used_lengths;  // per dimension: positions of which something is used
};

/// The parts of a chunk that a batch takes.
struct TakenBoxes {
  std::vector<Box> boxes;  // the first kMaxBoxes
  double elements = 0;     // of all
  std::int64_t count = 0;
  Box spanned;

  void add(const Box& box) {
    spanned = count == 0 ? box : bounding_box(spanned, box);
    elements += static_cast<double>(box.elements());
    if (!boxes.empty() && is_continued(boxes.back(), box)) return;
    if (count++ < kMaxBoxes) boxes.push_back(box);
  }

  /// Does `next` continue the box along one dimension? The box then has both.
  static bool is_continued(Box& box, const Box& next) {
    int along = -1;
    for (std::size_t d = 0; d < box.shape.size(); ++d) {
      if (box.start[d] == next.start[d] && box.shape[d] == next.shape[d]) continue;
      if (along >= 0 || box.start[d] + box.shape[d] != next.start[d]) return false;
      along = static_cast<int>(d);
    }
    if (along >= 0)
      box.shape[static_cast<std::size_t>(along)] += next.shape[static_cast<std::size_t>(along)];
    return along >= 0;
  }
};

/// Sums over some of the chunks of a variable that a batch needs.
struct TakenChunks {
  double all = 0, looked_at = 0;  // chunks
  double used_elements = 0;
  std::vector<double> used_lengths;  // per dimension: positions of which something is used

  void add(const TakenBoxes& taken) {
    // Overlapping windows take elements more than once: they are used once.
    const bool has_all = taken.count <= kMaxBoxes;
    const auto covered = has_all ? covered_elements(taken.boxes) : std::nullopt;
    const auto spanned = static_cast<double>(taken.spanned.elements());
    used_elements += covered ? static_cast<double>(*covered) : std::min(taken.elements, spanned);
    used_lengths.resize(taken.spanned.shape.size());
    for (std::size_t d = 0; d < used_lengths.size(); ++d)
      used_lengths[d] +=
          std::min(static_cast<double>(covered_length(taken.boxes, d)) *
                       static_cast<double>(taken.count) / static_cast<double>(taken.boxes.size()),
                   static_cast<double>(taken.spanned.shape[d]));
    ++looked_at;
  }
};

/// Adds the parts that a batch takes of its chunks. If there are many boxes, inspects only those of
/// some chunks.
void add_batch(const View& view, std::int64_t batch, std::vector<VariableSums>& sums) {
  std::vector<TakenChunks> taken(view.variables().size());
  std::vector<std::int64_t> first(view.variables().size(), -1);
  const std::int64_t boxes =
      for_each_chunk(view, 0, batch, [&](std::uint32_t variable, std::int64_t chunk) {
        if (taken[variable].all++ == 0) first[variable] = chunk;
        sums[variable].ratio.measure(*view.variables()[variable]->array, chunk);
      });
  const std::int64_t one_of = (boxes - 1) / kMaxBoxesOfBatch + 1;
  std::vector<std::unordered_map<std::int64_t, TakenBoxes>> chunks(taken.size());
  for (ChunkWalk& walk : chunk_walks(view, 0, batch))
    while (const auto each = walk.next())
      if (each->chunk == first[each->variable] || each->chunk % one_of == 0)
        chunks[each->variable][each->chunk].add(each->box);
  for (std::size_t v = 0; v < taken.size(); ++v) {
    if (taken[v].all == 0) continue;
    for (const auto& [chunk, of_chunk] : chunks[v]) taken[v].add(of_chunk);
    const double share = taken[v].all / taken[v].looked_at;
    sums[v].chunks += taken[v].all;
    sums[v].used_elements += taken[v].used_elements * share;
    sums[v].used_lengths.resize(taken[v].used_lengths.size());
    for (std::size_t d = 0; d < taken[v].used_lengths.size(); ++d)
      sums[v].used_lengths[d] += taken[v].used_lengths[d] * share;
  }
}

void find_waste(const Variable& variable, const VariableSums& sums,
                std::optional<ViewCost::Waste>& worst) {
  const ChunkGrid& grid = variable.array->grid();
  for (std::size_t d = 0; d < sums.used_lengths.size(); ++d) {
    const std::int64_t chunk = std::min(grid.chunk_shape()[d], grid.array_shape()[d]);
    const double used = sums.used_lengths[d] / sums.chunks;
    const double share = used / static_cast<double>(chunk);
    if (share > 0.75 || (worst && share >= worst->used / static_cast<double>(worst->chunk)))
      continue;
    worst = ViewCost::Waste{
        variable.name, d < variable.dims.size() ? variable.dims[d] : "characters", used, chunk};
  }
}

/// Is there nothing but metadata where a local store keeps the chunks? A remote one is not listed:
/// that may take long.
bool has_no_objects(const Array& array) {
  if (!array.store().is_local()) return false;
  const std::vector<Store::Entry> entries = array.store().list(array.metadata().path);
  return std::all_of(entries.begin(), entries.end(), [](const Store::Entry& entry) {
    return entry.name.starts_with('.') || entry.name == "zarr.json";
  });
}

using ChunkSets = std::vector<std::unordered_set<std::int64_t>>;  // per variable

double chunk_bytes(const View& view, std::uint32_t variable) {
  return static_cast<double>(view.variables()[variable]->array->chunk_bytes());
}

/// The share of all samples that an epoch has, at most 1.
double share_of_pass(const View& view) {
  return std::min(1.0,
                  static_cast<double>(view.epoch_samples()) / static_cast<double>(view.samples()));
}

/// The chunks of a batch, and bytes of those that `before` lacks. Returns how many boxes the batch
/// takes.
std::int64_t enter(const View& view, std::int64_t batch, const ChunkSets& before, ChunkSets& chunks,
                   double& new_bytes) {
  return for_each_chunk(view, 0, batch, [&](std::uint32_t variable, std::int64_t chunk) {
    if (!before[variable].contains(chunk)) new_bytes += chunk_bytes(view, variable);
    chunks[variable].insert(chunk);
  });
}

/// Bytes that an epoch decodes if the chunks of each batch are kept for the next one.
double decoded_with_the_last_batch(const View& view) {
  constexpr int kPairs = 32;
  constexpr double kGolden =
      0.6180339887498949;  // spreads without a period that chunks could have too
  double bytes = 0;
  for (int i = 1; i <= kPairs; ++i) {
    const double place = kGolden * i - std::floor(kGolden * i);
    const auto batch = static_cast<std::int64_t>(place * static_cast<double>(view.batches() - 1));
    const ChunkSets none(view.variables().size());
    ChunkSets before = none, after = none;
    double of_first = 0;
    enter(view, batch, none, before, of_first);
    enter(view, batch + 1, before, after, bytes);
  }
  return bytes / kPairs * static_cast<double>(view.batches());
}

/// Bytes that an epoch decodes if the chunks of as many successive batches are kept as fit.
double decoded_in_runs(const View& view, double kept) {
  constexpr std::int64_t kMaxBatches = 512;
  constexpr std::int64_t kMaxVisits = 1 << 22;
  ChunkSets chunks(view.variables().size());
  double bytes = 0;
  std::int64_t boxes = 0;
  std::int64_t batch = 0;
  for (; batch < std::min(view.batches(), kMaxBatches) && boxes < kMaxVisits; ++batch) {
    ChunkSets own(view.variables().size());
    double more = 0;
    boxes += enter(view, batch, chunks, own, more);
    if (batch > 0 && bytes + more > kept) break;
    bytes += more;
    for (std::size_t v = 0; v < own.size(); ++v) chunks[v].merge(own[v]);
  }
  return bytes * static_cast<double>(view.batches()) / static_cast<double>(batch);
}

}  // namespace

bool is_in_order(const View& view) {
  return view.order() == nullptr ? view.components().empty()
                                 : view.order()->shuffle == Order::Shuffle::none;
}

std::optional<double> ViewCost::fetch_amplification() const {
  if (!fetched_bytes || decoded_bytes == 0 || used_bytes == 0) return std::nullopt;
  return *fetched_bytes / used_bytes;
}

std::shared_ptr<const View> without_lanes(const View& view) {
  if (view.order()->lanes == 1) return {std::shared_ptr<const View>(), &view};
  Order order = *view.order();
  order.lanes = 1;
  order.home = false;
  return with_order(view, order);
}

ViewCost estimate_cost(const View& view) {
  ViewCost cost;
  if (view.order() != nullptr) cost.lanes = static_cast<double>(view.order()->lanes);
  cost.stored_chunk_bytes.resize(view.variables().size());
  cost.variable_bytes.resize(view.variables().size());
  const auto& variables = view.variables();
  std::vector<VariableSums> sums(variables.size());
  // The last batch may be short: it is left out when there are others.
  const std::int64_t full = std::max<std::int64_t>(view.batches() - 1, 1);
  const std::int64_t n = std::min(full, kPlannedBatches);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t batch = full / n * i + full % n * i / n;  // full * i / n without overflow
    cost.planned.push_back(batch);
    cost.batch_bytes += bytes_of(view, view.shapes(batch));
    cost.operand_bytes += static_cast<double>(operand_memory(view, batch));
    add_batch(view, batch, sums);
  }

  double fetched = 0;
  bool all_measured = true;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (sums[v].chunks == 0) continue;
    const Array& array = *variables[v]->array;
    const auto chunk_bytes = static_cast<double>(array.chunk_bytes());
    const std::optional<double> ratio = sums[v].ratio.ratio();
    if (ratio) cost.stored_chunk_bytes[v] = chunk_bytes * *ratio;
    cost.chunks += sums[v].chunks;
    cost.used_bytes += sums[v].used_elements * array.type().itemsize;
    cost.decoded_bytes += sums[v].chunks * chunk_bytes;
    fetched += sums[v].chunks * chunk_bytes * ratio.value_or(0);
    all_measured = all_measured && ratio.has_value();
    if (sums[v].ratio.unreadable()) cost.unreadable.push_back(*sums[v].ratio.unreadable());
    if (sums[v].ratio.all_missing())
      cost.absent.push_back({variables[v]->name, has_no_objects(array)});
    const std::vector<Positions> reached =
        positions_in_windows(view, static_cast<std::uint32_t>(v));
    const std::int64_t view_chunks = touched_chunks(*variables[v], pointers(reached));
    cost.view_chunks += view_chunks;
    cost.variable_bytes[v] = static_cast<double>(view_chunks) * chunk_bytes;
    cost.view_bytes += cost.variable_bytes[v];
    find_waste(*variables[v], sums[v], cost.waste);
  }
  const auto count = static_cast<double>(n);
  cost.batch_bytes /= count;
  cost.operand_bytes /= count;
  cost.chunks /= count;
  cost.used_bytes /= count;
  cost.decoded_bytes /= count;
  if (all_measured) cost.fetched_bytes = fetched / count;
  cost.epoch_bytes = cost.batch_bytes * static_cast<double>(view.batches() - 1) +
                     bytes_of(view, view.shapes(view.batches() - 1));
  cost.reads_per_chunk =
      std::max(1.0, cost.chunks * static_cast<double>(view.batches()) /
                        static_cast<double>(std::max<std::int64_t>(cost.view_chunks, 1)));
  cost.memory_need = need(cost.batch_bytes, cost.operand_bytes, cost.decoded_bytes);
  cost.shuffle_quality = shuffle_quality(view);
  return cost;
}

double batch_memory(const ViewCost& cost) {
  constexpr double kListBytes = 3 << 10;  // for each chunk of a batch
  return cost.batch_bytes + cost.operand_bytes + cost.chunks * kListBytes;
}

bool reads_locally(const View& view) {
  return std::ranges::all_of(view.variables(), [](const Variable* variable) {
    return variable->array->store().is_local();
  });
}

double kept_between_batches(const View& view, const ViewCost& cost, double budget) {
  // A batch that was read, the next one, and those that are always made ahead.
  constexpr double kBatches = 2 + Prefetcher::kFirstPrefetch;
  const double beside = std::max(0.0, budget - kBatches * batch_memory(cost));
  const bool again = view.spec().epochs > 1 || !is_in_order(view);
  double memory = 0;
  for (std::size_t v = 0; v < view.variables().size(); ++v) {
    const std::uint64_t chunk =
        std::max<std::uint64_t>(1, view.variables()[v]->array->chunk_bytes());
    memory += ChunkCache::memory_of_all(cost.variable_bytes[v] / static_cast<double>(chunk), chunk);
  }
  if (again && memory <= beside &&
      ChunkCache::can_keep_all(memory, static_cast<std::uint64_t>(budget)))
    return cost.view_bytes;
  return std::min(static_cast<double>(kept_memory(static_cast<std::uint64_t>(budget))), beside);
}

double epoch_decoded(const View& view, const ViewCost& cost, double kept) {
  if (cost.view_bytes <= kept) return cost.view_bytes * share_of_pass(view);
  const double unkept = cost.decoded_bytes * static_cast<double>(view.batches());
  const Order* order = view.order();
  double decoded = unkept;
  if (order != nullptr && order->shuffle == Order::Shuffle::global) {
    decoded = unkept * (1 - kept / cost.view_bytes);
  } else if (order != nullptr && order->shuffle == Order::Shuffle::block) {
    const BlockCost block = estimate_block_cost(view);
    if (block.run_decoded * cost.lanes <= kept) decoded = block.epoch_decoded;
  } else if (const double of_lane = kept / cost.lanes;
             view.batches() > 1 && 2 * cost.decoded_bytes <= of_lane) {
    const auto lane = order != nullptr ? without_lanes(view) : nullptr;
    const View& read = lane ? *lane : view;
    decoded = std::min(decoded_with_the_last_batch(read), decoded_in_runs(read, of_lane));
  }
  // An epoch of some of the samples needs about as many of the chunks.
  return std::max(cost.view_bytes * share_of_pass(view), std::min(decoded, unkept));
}

double memory_need(const View& view) {
  double decoded = 0;
  for_each_chunk(view, 0, 0, [&](std::uint32_t variable, std::int64_t) {
    decoded += chunk_bytes(view, variable);
  });
  return need(bytes_of(view, view.shapes(0)), static_cast<double>(operand_memory(view, 0)),
              decoded);
}

BlockCost estimate_block_cost(const View& laned) {
  const std::shared_ptr<const View> lane = without_lanes(laned);
  const View& view = *lane;
  // Some of a run's batches, enough to meet nearly all of its chunks: eight samples for a group.
  const std::int64_t batches = std::max<std::int64_t>(1, mixed_samples(view) / view.batch_size());
  const std::int64_t n =
      std::min({batches, view.batches(),
                std::clamp<std::int64_t>(8 * view.order()->buffer / view.batch_size(), 16, 512)});
  std::vector<std::unordered_set<std::int64_t>> chunks(view.variables().size());
  for (std::int64_t i = 0; i < n; ++i)
    for_each_chunk(
        view, 0, batches / n * i + batches % n * i / n,
        [&](std::uint32_t variable, std::int64_t chunk) { chunks[variable].insert(chunk); });
  BlockCost cost;
  for (std::size_t v = 0; v < chunks.size(); ++v) {
    cost.variables.push_back(static_cast<double>(chunks[v].size()) *
                             static_cast<double>(view.variables()[v]->array->chunk_bytes()));
    cost.run_decoded += cost.variables.back();
  }
  // A batch that is larger than a run holds several.
  const auto covered = static_cast<double>(std::max(mixed_samples(view), view.batch_size()));
  const double runs = std::max(1.0, static_cast<double>(view.epoch_samples()) / covered);
  cost.epoch_decoded = cost.run_decoded * runs;
  for (double& bytes : cost.variables) bytes *= runs;
  return cost;
}

}  // namespace batchfs
