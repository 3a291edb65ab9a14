#pragma once
// Reads that fill a box of a made channel from one of its variables: from the variable's own array
// where positions are those of the channel; else, for another source or several stores, boxes of
// one chunk each, with the destinations of their elements.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"

namespace batchfs {

/// The reads of one variable, which outlives this. Immutable, thread-safe.
class OperandReads {
 public:
  explicit OperandReads(const Variable& variable);

  /// A box of the array of one part, and for each dimension the places, (in the box, in the
  /// result), of the indices that are taken.
  struct Read {
    std::size_t part = 0;
    Box box;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> places;
  };

  /// Are positions of the view's dimensions those of the array?
  bool is_direct() const { return parts_.size() == 1 && parts_[0].positions.empty(); }
  std::size_t parts() const { return parts_.size(); }
  /// The variable, or of several stores that of one of them. Its array may be null.
  const Variable& part(std::size_t number) const { return *parts_[number].variable; }

  /// The reads that fill a box of positions of the view's dimensions. A position that no array has
  /// is in none of them.
  std::vector<Read> of(const Box& box) const;

  /// Does the variable have this position of the view's dimension that is its dimension number `d`?
  bool has(std::size_t d, std::int64_t position) const;

 private:
  struct Part {
    const Variable* variable;
    std::vector<Positions> positions;  // by position of the view's dimension; empty: the same
  };
  std::vector<Part> parts_;
};

}  // namespace batchfs
