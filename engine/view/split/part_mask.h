#pragma once
// Which elements of a variable belong to a part of a split: for numbers that must not know the
// other parts.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/dims.h"
#include "engine/view/view.h"

namespace batchfs {

/// The elements of one variable. Elements along dimensions that the split does not distinguish
/// belong to the part if any place along the split's other dimensions does. Immutable, thread-safe.
class VariableMask {
 public:
  bool is_whole() const { return included_.empty(); }

  /// Sets the elements that are not in the part to NaN, in a box of the array at C-order `values`.
  /// `indices`: per dimension those that are looked at, counted from the box's start. Returns how
  /// many are not in the part.
  std::int64_t blank(const Box& box, const std::vector<std::span<const std::int64_t>>& indices,
                     double* values) const;

 private:
  friend class PartMask;
  /// One dimension of the array that the split is along.
  struct Axis {
    std::size_t dim;
    std::size_t stride;  // in `included_`
    const std::vector<std::int32_t>* runs;
    std::shared_ptr<const std::vector<std::int32_t>> own = nullptr;  // that `runs` points to
  };
  std::vector<Axis> axes_;      // in the order of the array's dimensions
  std::vector<bool> included_;  // by run along each axis; empty: all elements are
};

/// The positions of the part that a view is of: those that keep the gap too, which are the ones
/// that would be samples by themselves.
class PartMask {
 public:
  /// Without a split, the part of a view is everything.
  explicit PartMask(const View& view);

  /// The dimensions that the split is along.
  const std::vector<std::string>& dims() const { return dims_; }
  /// Refers to this object.
  VariableMask of(const std::vector<std::string>& dims) const;
  /// The same, for a variable of one part of concatenated stores.
  VariableMask of_variable(const Variable& variable) const;

 private:
  std::vector<std::string> dims_;
  std::vector<std::vector<std::int32_t>> runs_;  // of each stored position; -1: not selected
  std::vector<std::size_t> counts_;              // of runs along each dimension
  std::vector<bool> included_;                   // by run along each dimension, row-major
};

}  // namespace batchfs
