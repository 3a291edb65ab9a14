#pragma once
// Groups of listed samples that begin in the same chunks: the order "block" keeps them together.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/order/chunk_groups.h"
#include "engine/view/order/order.h"

namespace batchfs {

/// Groups of a sequence of samples, by the chunks that their windows begin in.
struct SequenceGroups {
  ChunkGroups groups;                 // one axis, over places
  std::vector<std::uint32_t> places;  // which of the sequence is at each place
};

/// Numbers the groups of starts, row-major over the chunks along each window dimension.
class GroupNumbers {
 public:
  /// `span` as in chunk_groups().
  GroupNumbers(const WindowedVariables& view,
               const std::vector<std::pair<std::string, std::int64_t>>& span);
  /// Numbers them as home_deal() orders them from now on.
  void deal(std::uint64_t seed) { deal_.emplace(home_deal(count_, seed)); }
  std::int64_t of(const std::int64_t* starts) const;
  std::int64_t count() const { return count_; }

 private:
  struct Axis {
    const Positions* selected;
    const std::vector<std::int64_t>* by;  // chunks of another source; null: of the first
    std::int64_t length;  // of a group, in positions of the store; in chunks of the other source

    std::int64_t number(std::int64_t start) const {
      return (by != nullptr ? (*by)[static_cast<std::size_t>(start)] : (*selected)[start]) / length;
    }
    std::int64_t step;  // of the number
  };
  std::vector<Axis> axes_;
  std::int64_t count_ = 1;
  std::optional<Permutation> deal_;
};

/// Sorts the samples of a sequence by their groups, those of a group in the order of the sequence.
/// `starts_of(i, starts)` writes the starts of the i-th. Throws not_supported from 2^32 samples on.
/// Takes 4 bytes for each, and 8 for each group; twice as many while it sorts.
SequenceGroups group_sequence(
    const GroupNumbers& numbers, std::int64_t samples, std::size_t dims,
    const std::function<void(std::int64_t i, std::int64_t* starts)>& starts_of);

/// Like default_mixing(), for groups of starts in one chunk.
std::int64_t default_list_mixing(const WindowedVariables& view,
                                 const std::vector<std::pair<std::string, std::int64_t>>& span);

}  // namespace batchfs
