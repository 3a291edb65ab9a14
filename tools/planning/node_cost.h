#pragma once
// Estimates what the nodes of a cluster fetch from the store in one epoch, each for its own ranks.

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/planning/view_cost.h"

namespace batchfs {

/// Assigns ranks to nodes in order: neighbours are on one node.
struct Cluster {
  std::int64_t world = 1, nodes = 1;

  std::int64_t first_rank(std::int64_t node) const;
  /// The most lanes of an order that the ranks of one node read at a time.
  std::int64_t lanes_of_node(std::int64_t lanes) const;
};

/// Stored bytes to fetch, if a node keeps fetched data for the rest of the epoch, in memory or in
/// --cache-dir.
struct NodeCost {
  double all = 0;     // of all nodes
  double copies = 1;  // nodes that fetch a chunk, on average over the chunks that any fetches
  /// True: counted from the plans of all batches. False: computed by a formula, see
  /// batchfs-view(5), and the members below are empty.
  bool counted = false;
  std::vector<double> by_node;
  std::optional<double> next_epoch;  // of all nodes, if they keep what epoch 0 fetched
};

/// nullopt if no stored chunk could be read. Takes bounded time: views with many samples are not
/// counted.
std::optional<NodeCost> estimate_nodes(const View& view, const ViewCost& cost,
                                       const Cluster& cluster);

/// Estimate of NodeCost::copies for views that are too large to count.
double estimated_copies(const View& view, const ViewCost& cost, const Cluster& cluster);

}  // namespace batchfs
