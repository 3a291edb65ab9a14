#pragma once
// A variable of the store over window dimensions, whose values describe the windows: a mask,
// weights.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/label_number.h"
#include "engine/dataset/positions.h"
#include "engine/view/geometry.h"

namespace batchfs {

struct WindowVariable {
  /// One dimension of the variable.
  struct Axis {
    std::size_t window;  // number of the window dimension
    Positions selected;  // of the variable's array
    std::int64_t step;   // elements from one index to the next
  };
  std::vector<Axis> axes;

  /// The place among the values of position `p` of the selection along an axis, to be added up.
  std::int64_t offset(std::size_t axis, std::int64_t p) const {
    return axes[axis].selected[p] * axes[axis].step;
  }
};

struct WindowValues : WindowVariable {
  NdArray values;
  /// The value at a place; NaN where it is missing.
  LabelNumber at(std::int64_t place) const;
};

/// Reads the variable, blocking. Throws not_found for an unknown name, invalid_argument for a
/// variable with other dimensions than those of `windows`, with none, or not of numbers or
/// booleans, not_supported for too many values, no_memory; `path` is in front.
WindowValues read_window_values(const Dataset& dataset, const std::string& name,
                                const std::string& path, const std::vector<WindowDim>& windows,
                                const std::map<std::string, Positions>& selected);

/// A bit a value.
struct WindowMarks : WindowVariable {
  std::vector<bool> marked;  // by place
};

/// The same, with the answer of `is_marked` for each value: the values are read in pieces, of a row
/// of chunks each, but those of times and of concatenated stores.
WindowMarks read_window_marks(const Dataset& dataset, const std::string& name,
                              const std::string& path, const std::vector<WindowDim>& windows,
                              const std::map<std::string, Positions>& selected,
                              const std::function<bool(LabelNumber)>& is_marked);

}  // namespace batchfs
