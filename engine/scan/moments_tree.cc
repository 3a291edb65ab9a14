#include "engine/scan/moments_tree.h"

#include <utility>

#include "engine/base/error.h"

namespace batchfs {

namespace {

/// By entry. Entries of only one of the two stay as they are.
void merge_entries(MomentsNode& left, MomentsNode&& right) {
  if (left.entries == right.entries) {
    for (std::size_t i = 0; i < left.moments.size(); ++i) left.moments[i].add(right.moments[i]);
    return;
  }
  std::vector<std::int64_t> entries;
  std::vector<MergedMoments> moments;
  for (std::size_t l = 0, r = 0; l < left.entries.size() || r < right.entries.size();) {
    const bool from_left = r == right.entries.size() ||
                           (l < left.entries.size() && left.entries[l] <= right.entries[r]);
    const bool from_right = l == left.entries.size() ||
                            (r < right.entries.size() && right.entries[r] <= left.entries[l]);
    entries.push_back(from_left ? left.entries[l] : right.entries[r]);
    moments.push_back(from_left ? left.moments[l] : right.moments[r]);
    if (from_left && from_right) moments.back().add(right.moments[r]);
    if (from_left) ++l;
    if (from_right) ++r;
  }
  left.entries = std::move(entries);
  left.moments = std::move(moments);
}

}  // namespace

void MomentsTree::add(MomentsNode node) {
  if (node.level < 0 || node.level > kMaxLevel || node.first < 0 || node.first >= kMaxLeaves ||
      node.first % (std::int64_t{1} << node.level) != 0 ||
      (!nodes_.empty() && nodes_.back().end() != node.first))
    throw Error(ErrorCode::corrupt, "partial sums that do not follow one another");
  nodes_.push_back(std::move(node));
  while (nodes_.size() > 1) {
    MomentsNode& left = nodes_[nodes_.size() - 2];
    MomentsNode& right = nodes_.back();
    const bool siblings =
        left.level == right.level && left.first % (std::int64_t{2} << left.level) == 0;
    if (!siblings) return;
    merge_entries(left, std::move(right));
    ++left.level;
    nodes_.pop_back();
  }
}

bool MomentsTree::is_whole(std::int64_t leaves) const {
  return leaves == 0
             ? nodes_.empty()
             : !nodes_.empty() && nodes_.front().first == 0 && nodes_.back().end() == leaves;
}

std::vector<Moments> MomentsTree::total(std::int64_t entries) const {
  std::vector<Moments> result(static_cast<std::size_t>(entries));
  if (nodes_.empty()) return result;
  MomentsNode sum = nodes_.back();
  for (std::size_t n = nodes_.size() - 1; n-- > 0;) {
    MomentsNode left = nodes_[n];
    merge_entries(left, std::move(sum));
    sum = std::move(left);
  }
  for (std::size_t i = 0; i < sum.entries.size(); ++i)
    result[static_cast<std::size_t>(sum.entries[i])] = sum.moments[i].moments();
  return result;
}

}  // namespace batchfs
