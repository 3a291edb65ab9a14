#pragma once
// A dimension of an array as the metadata of its group describes it (OME-Zarr).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace batchfs {

struct ArrayAxis {
  enum class Type : std::uint8_t { other, space, time, channel };

  std::string name;
  Type type = Type::other;
  std::string unit;         // "micrometer"; empty: none is known
  bool has_values = false;  // the position i lies at scale * i + translation
  double scale = 1, translation = 0;
  bool whole = false;  // values are int64, below 2^53; else float64
  std::shared_ptr<const std::vector<std::string>> labels;  // one for each position; null: none

  bool has_coordinate() const { return has_values || labels != nullptr; }
  /// Do positions of both have the same coordinate?
  bool has_coordinate_of(const ArrayAxis& other) const {
    return has_values == other.has_values && unit == other.unit && scale == other.scale &&
           translation == other.translation && (labels == nullptr) == (other.labels == nullptr) &&
           (labels == nullptr || *labels == *other.labels);
  }
};

}  // namespace batchfs
