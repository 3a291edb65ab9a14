#pragma once
// The arrays of an output for predictions and their coordinates: documents and encoding.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/store/output/output_store.h"
#include "engine/write/output_array.h"
#include "engine/write/prediction/placement.h"

namespace batchfs {

/// Immutable, thread-safe.
class PredictionDocuments {
 public:
  /// Throws invalid_argument for arrays that share an axis's name but not its labels.
  PredictionDocuments(const std::vector<Placement>& placements, const Compression& compression);

  /// Identifies the arrays and coordinates: outputs with another identity are of another run.
  Json identity() const;

  /// Encodes and puts an object of the array with this number; `values` are the result of
  /// fold_samples().
  void put_object(std::size_t array, const Placement& placement, std::int64_t number,
                  const std::byte* values, OutputStore& output) const;
  /// The coordinates, then all documents, the one that makes the output a Zarr store last.
  void put_rest(OutputStore& output) const;

 private:
  struct Coordinate {
    OutputArray array;
    std::shared_ptr<const CoordinateLabels> labels;
  };
  void add_coordinate(const PredictedArray& array, const PredictedAxis& axis);
  void put_coordinate(const Coordinate& coordinate, OutputStore& output) const;

  std::vector<OutputArray> arrays_;
  std::map<std::string, std::int64_t> lengths_;  // by the axis's name
  std::vector<Coordinate> coordinates_;
};

}  // namespace batchfs
