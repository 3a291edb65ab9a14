#pragma once
// What fills a box of a made channel from a variable of it: the variable's own array where
// positions are those of the channel; else, of another source or of several stores, boxes of one
// chunk each, and where their elements go.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"

namespace batchfs {

/// Of one variable, which outlives it. Immutable, thread-safe.
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

  /// What fills a box of positions of the view's dimensions. A position that no array has is in
  /// none of them.
  std::vector<Read> of(const Box& box) const;

  /// Of the positions of the view's dimension that is the variable's number `d`, those that it has.
  bool has(std::size_t d, std::int64_t position) const;

 private:
  struct Part {
    const Variable* variable;
    std::vector<Positions> positions;  // by position of the view's dimension; empty: the same
  };
  std::vector<Part> parts_;
};

}  // namespace batchfs
