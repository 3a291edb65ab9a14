#pragma once
// A channel that no store holds: its dimensions, as a variable has them, and its values, which are
// made where a batch has them.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/dataset/dataset.h"
#include "engine/view/made/formula.h"
#include "engine/view/made/made_spec.h"

namespace batchfs {

/// Immutable, thread-safe.
class MadeChannel {
 public:
  /// Precondition: a channel of time has its `times`. Reads coordinates, blocking. Throws
  /// invalid_argument, not_found with the spec's path.
  MadeChannel(MadeSpec spec, const Dataset& dataset);

  const MadeSpec& spec() const { return spec_; }
  /// Its name, dimensions and type, float64; without values.
  const Variable& variable() const { return variable_; }

  /// Is it made of variables of the store, by a Combination?
  bool is_combined() const { return !spec_.of.empty(); }

  /// Precondition: it is not combined. Writes the values of a box of positions of its dimensions,
  /// converted. `strides` are in bytes at `out`, one per dimension; `repeat` names more places,
  /// null: none.
  void write(const Box& positions, const Converter& converter, std::byte* out, const Dims& strides,
             const Repeat* repeat) const;

 private:
  /// Values at `out` in order of the box's last dimension, and where each is repeated nearby.
  void write_run(const Dims& position, std::size_t axis, std::int64_t count,
                 const Converter& converter, std::byte* out, std::int64_t stride,
                 const Repeat& near) const;

  const MadeSpec spec_;
  Variable variable_;
  std::unique_ptr<const TimeLabels> times_;    // null for channels without time
  std::unique_ptr<const Formula> formula_;     // null for channels of others
  Dims latitude_strides_, longitude_strides_;  // in the coordinates, per dimension
};

}  // namespace batchfs
