#pragma once
// Sums moments over a binary tree of fixed shape, so that processes which share the work compute
// the same bits as one process.
//
// The leaves are numbered. Node k of level l covers the leaves from k 2^l to (k + 1) 2^l, the end
// excluded, and merges its two children, the left one first. A run of leaves is held as its largest
// nodes; those of neighbouring runs merge further. Where the number of leaves is not a power of
// two, the remaining nodes are merged from the right.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/scan/moments.h"

namespace batchfs {

/// Moments of some of the entries (the numbers that are kept apart, as those of each level).
struct MomentsNode {
  std::int64_t first = 0;  // leaf; a multiple of 2^level
  int level = 0;
  std::vector<std::int64_t> entries;   // ascending
  std::vector<MergedMoments> moments;  // of each
  std::int64_t end() const { return first + (std::int64_t{1} << level); }
};

/// Not thread-safe.
class MomentsTree {
 public:
  static constexpr int kMaxLevel = 17;
  static constexpr std::int64_t kMaxLeaves = std::int64_t{1} << kMaxLevel;

  /// Nodes come in order: `node.first` is the end of the one before, but for the first one. Throws
  /// corrupt otherwise, and for a node that is not of the tree.
  void add(MomentsNode node);

  const std::vector<MomentsNode>& nodes() const { return nodes_; }
  std::vector<MomentsNode> take() { return std::move(nodes_); }
  /// Do the nodes cover the leaves from 0 to `leaves`?
  bool is_whole(std::int64_t leaves) const;
  /// Moments over all leaves, by entry; entries that no leaf has are empty.
  std::vector<Moments> total(std::int64_t entries) const;

 private:
  std::vector<MomentsNode> nodes_;
};

}  // namespace batchfs
