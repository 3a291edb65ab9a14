#include "tools/planning/node_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_set>

#include "engine/dataset/dataset.h"
#include "engine/view/order/order.h"
#include "engine/view/plan/batch_chunks.h"

namespace batchfs {

namespace {

/// Windows of all variables, and uses of chunks, that are planned to count.
constexpr double kMaxCountedRows = 1 << 20, kMaxCountedUses = 1 << 21;

/// The number of batches, at most `most`, that can be planned in bounded time.
std::int64_t batches_to_plan(const View& view, std::int64_t most) {
  constexpr std::int64_t kMaxSamples = 1 << 14;
  return std::clamp<std::int64_t>(kMaxSamples / view.batch_size(), 1, most);
}

using ChunkSets = std::vector<std::unordered_set<std::int64_t>>;  // per variable

/// Stored and decoded bytes of distinct chunks.
struct Bytes {
  double stored = 0, decoded = 0;

  void add(const View& view, const ViewCost& cost, std::uint32_t variable) {
    stored += cost.stored_chunk_bytes[variable].value_or(0);
    decoded += static_cast<double>(view.variables()[variable]->array->chunk_bytes());
  }
};

bool can_be_counted(const View& view, const ViewCost& cost) {
  const auto batches = static_cast<double>(view.batches());
  return batches * static_cast<double>(view.batch_size()) *
                 static_cast<double>(view.variables().size()) <=
             kMaxCountedRows &&
         batches * cost.chunks <= kMaxCountedUses;
}

/// Adds the chunks of a node's batches to `chunks`. Returns the bytes of those that were new.
Bytes count(const View& view, const ViewCost& cost, const Cluster& cluster, std::int64_t node,
            std::int64_t epoch, ChunkSets& chunks) {
  Bytes bytes;
  for (std::int64_t r = cluster.first_rank(node); r < cluster.first_rank(node + 1); ++r)
    for (std::int64_t i = 0; i < view.rank_batches(r, cluster.world); ++i)
      for_each_chunk(view, epoch, i * cluster.world + r,
                     [&](std::uint32_t variable, std::int64_t chunk) {
                       if (chunks[variable].insert(chunk).second) bytes.add(view, cost, variable);
                     });
  return bytes;
}

/// Different nodes among those of `draws` times `each` different ones. `draws` may be a mean.
double distinct_nodes(double draws, double each, double nodes) {
  const auto of = [&](double k) { return nodes * (1 - std::pow(1 - each / nodes, k)); };
  const double whole = std::floor(draws);
  return of(whole) + (draws - whole) * (of(whole + 1) - of(whole));
}

std::int64_t node_of(const Cluster& cluster, std::int64_t rank) {
  std::int64_t node = rank * cluster.nodes / cluster.world;
  while (cluster.first_rank(node) > rank) --node;
  while (cluster.first_rank(node + 1) <= rank) ++node;
  return node;
}

/// The nodes whose ranks read a lane, on average over the lanes.
double nodes_of_lane(const Cluster& cluster, std::int64_t lanes) {
  const std::int64_t step = std::gcd(lanes, cluster.world);
  double sum = 0;
  for (std::int64_t first = 0; first < step; ++first) {
    std::int64_t last = -1;
    for (std::int64_t rank = first; rank < cluster.world; rank += step)
      if (const std::int64_t node = node_of(cluster, rank); node != last) {
        last = node;
        ++sum;
      }
  }
  return sum / static_cast<double>(step);
}

/// How many nodes need each chunk, in batches that follow each other in a lane.
double copies_in_stretches(const View& view, const Cluster& cluster) {
  constexpr std::int64_t kStretches = 16, kLength = 64;
  const std::int64_t lanes = view.order() != nullptr ? view.order()->lanes : 1;
  const std::int64_t of_lane = std::max<std::int64_t>(1, view.batches() / lanes);
  const std::int64_t length = std::min(batches_to_plan(view, kLength), of_lane);
  const Permutation spread(of_lane - length + 1, 0, 0);
  double all = 0, once = 0;
  for (std::int64_t i = 0; i < std::min(kStretches, of_lane - length + 1); ++i) {
    std::set<std::array<std::int64_t, 3>> by_node;
    std::set<std::array<std::int64_t, 2>> any;
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t batch = (spread(i) + k) * lanes + i % lanes;
      if (batch >= view.batches()) continue;
      const std::int64_t node = node_of(cluster, batch % cluster.world);
      for_each_chunk(view, 0, batch, [&](std::uint32_t variable, std::int64_t chunk) {
        by_node.insert({node, variable, chunk});
        any.insert({variable, chunk});
      });
    }
    all += static_cast<double>(by_node.size());
    once += static_cast<double>(any.size());
  }
  return once > 0 ? all / once : 1;
}

/// How many groups of a block order need a chunk, on average.
double groups_of_chunk(const View& view, const ViewCost& cost) {
  constexpr std::uint64_t kGroups = 4;
  constexpr std::int64_t kMaxBatches = 64;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < kGroups; ++seed) {
    const auto group = with_order(view, {.shuffle = Order::Shuffle::block, .seed = seed});
    const std::int64_t size = mixed_samples(*group);
    const std::int64_t batches = std::max<std::int64_t>(1, size / group->batch_size());
    const std::int64_t n =
        std::min({batches, group->batches(), batches_to_plan(view, kMaxBatches)});
    ChunkSets chunks(view.variables().size());
    for (std::int64_t i = 0; i < n; ++i)
      for_each_chunk(
          *group, 0, batches / n * i + batches % n * i / n,
          [&](std::uint32_t variable, std::int64_t chunk) { chunks[variable].insert(chunk); });
    double decoded = 0;
    for (std::size_t v = 0; v < chunks.size(); ++v)
      decoded += static_cast<double>(chunks[v].size()) *
                 static_cast<double>(view.variables()[v]->array->chunk_bytes());
    const auto covered = static_cast<double>(std::max(size, group->batch_size()));
    sum += decoded * static_cast<double>(view.samples()) / covered;
  }
  return std::max(1.0, sum / static_cast<double>(kGroups) / std::max(cost.view_bytes, 1.0));
}

}  // namespace

std::int64_t Cluster::first_rank(std::int64_t node) const {
  return world / nodes * node + std::min(node, world % nodes);
}

std::int64_t Cluster::lanes_of_node(std::int64_t lanes) const {
  const std::int64_t ranks = first_rank(1);  // of the first node, which has no fewer than others
  return std::min(lanes, lanes / std::gcd(lanes, world) * ranks);
}

double estimated_copies(const View& view, const ViewCost& cost, const Cluster& cluster) {
  if (cluster.nodes == 1) return 1;
  const auto nodes = static_cast<double>(cluster.nodes);
  const Order* order = view.order();
  if (order == nullptr || order->shuffle == Order::Shuffle::none)
    return copies_in_stretches(view, cluster);
  const double reads = cost.reads_per_chunk;  // batches that need a chunk
  const double passes = std::max(
      1.0, static_cast<double>(view.epoch_samples()) / static_cast<double>(view.samples()));
  if (order->shuffle == Order::Shuffle::global) return distinct_nodes(reads, 1, nodes);
  const double groups = groups_of_chunk(view, cost), of_lane = nodes_of_lane(cluster, order->lanes);
  // The batches of a group that need a chunk are read by nodes of one lane.
  const double of_group = distinct_nodes(std::max(1.0, reads / groups), 1, of_lane);
  double copies = distinct_nodes(groups * passes, of_group, nodes);
  // Lanes cut runs in two.
  if (!order->home && of_lane < nodes)
    copies += (nodes - 1) * estimate_block_cost(view).run_decoded / std::max(cost.view_bytes, 1.0);
  return std::min(copies, nodes);
}

std::optional<NodeCost> estimate_nodes(const View& view, const ViewCost& cost,
                                       const Cluster& cluster) {
  if (!cost.fetched_bytes) return std::nullopt;
  NodeCost result;
  if (can_be_counted(view, cost)) {
    result.counted = true;
    result.next_epoch = 0;
    ChunkSets any(view.variables().size());
    Bytes once;
    double decoded = 0;
    for (std::int64_t node = 0; node < cluster.nodes; ++node) {
      ChunkSets chunks(view.variables().size());
      const Bytes bytes = count(view, cost, cluster, node, 0, chunks);
      result.by_node.push_back(bytes.stored);
      result.all += bytes.stored;
      decoded += bytes.decoded;
      for (std::uint32_t v = 0; v < chunks.size(); ++v)
        for (const std::int64_t chunk : chunks[v])
          if (any[v].insert(chunk).second) once.add(view, cost, v);
      *result.next_epoch += count(view, cost, cluster, node, 1, chunks).stored;
    }
    result.copies = once.decoded > 0 ? decoded / once.decoded : 1;
    return result;
  }
  result.copies = estimated_copies(view, cost, cluster);
  const double ratio = cost.decoded_bytes > 0 ? *cost.fetched_bytes / cost.decoded_bytes : 0;
  const double share = std::min(
      1.0, static_cast<double>(view.epoch_samples()) / static_cast<double>(view.samples()));
  result.all = result.copies * cost.view_bytes * share * ratio;
  return result;
}

}  // namespace batchfs
