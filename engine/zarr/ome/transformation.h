#pragma once
// "coordinateTransformations" of OME-Zarr that leave the axes apart: identity, scale, translation
// and sequences of these. Source: OME-Zarr specification 0.4 to 0.6.

#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// The position i of an axis lies at scale * i + translation.
struct AxisTransformation {
  std::vector<double> scale, translation;  // one for each axis
  /// Why the coordinates are not known, "multiscales[0]...: 'affine' is not supported"; empty: they
  /// are.
  std::string unknown;

  explicit AxisTransformation(std::size_t axes) : scale(axes, 1), translation(axes, 0) {}
};

/// Applies a list of transformations, in its order, after those that `result` holds. A type that
/// mixes axes, and parameters in an array of their own, make it unknown. Throws invalid_argument
/// for a scale that is not above 0 and for parameters that are not numbers or not as many as axes.
void apply_transformations(const JsonRef& list, AxisTransformation& result);
void apply_transformation(const JsonRef& transformation, AxisTransformation& result);

}  // namespace batchfs
