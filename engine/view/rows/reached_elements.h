#pragma once
// The elements of a variable, or of a made channel, that the samples of a view reach: an element
// counts if one sample has it, which positions along each dimension by itself do not determine.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/view/samples/axis_groups.h"
#include "engine/view/samples/missing.h"
#include "engine/view/samples/start_table.h"
#include "engine/view/view.h"

namespace batchfs {

/// Immutable, thread-safe.
class ReachedElements {
 public:
  /// `placements` of the variable, not empty. `starts` is of the whole grid. An element is all that
  /// the variable has at one position of `dims`, ascending.
  ReachedElements(const std::vector<const VariablePlacement*>& placements, const WindowGrid& grid,
                  const StartTable& starts, const std::vector<std::size_t>& dims);

  /// Dimensions of the variable, ascending, that determine together what is reached, from among the
  /// positions that are reached along each. Empty: all of these are.
  const std::vector<std::size_t>& dims() const { return dims_; }
  /// Which elements are reached, row-major over array indices along each of dims().
  std::vector<bool> at(const std::vector<std::vector<std::int64_t>>& indices) const;

 private:
  void find_dims(const std::vector<const VariablePlacement*>& placements, const WindowGrid& grid,
                 const StartTable& starts, const std::vector<std::size_t>& windows,
                 const std::vector<std::size_t>& dims);

  std::vector<std::size_t> dims_;
  StartTable starts_ = StartTable::whole({});    // along dims()
  std::vector<std::vector<AxisGroups>> groups_;  // by placement and number in dims()
};

/// The elements of a variable that samples reach.
struct Reached {
  std::vector<Positions> positions;  // per dimension of the array
  /// Null: the product of the positions.
  std::shared_ptr<const ReachedElements> elements;
};

/// Which choices of a reached position along each dimension are reached together. A choice has the
/// number that is the sum of the steps times the places of the positions in their lists.
class ReachedChoices {
 public:
  explicit ReachedChoices(const Reached& reached);

  const Dims& steps() const { return steps_; }
  bool contains(std::size_t choice) const { return reached_.empty() || reached_[choice]; }

 private:
  Dims steps_;
  std::vector<bool> reached_;  // empty: all are
};

/// `starts` of the view: sample_starts(). By the number in View::variables() and in TensorSet::made.
/// `among`: dimensions that elements are distinguished along, ascending; null: all.
Reached reached_by_samples(const View& view, std::uint32_t variable, const StartTable& starts,
                           const std::vector<std::size_t>* among = nullptr);
Reached reached_of_made(const View& view, std::uint32_t number, const StartTable& starts,
                        const std::vector<std::size_t>* among = nullptr);

}  // namespace batchfs
