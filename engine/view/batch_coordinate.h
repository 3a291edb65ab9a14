#pragma once
// A coordinate of the tensors of one batch. Its values are made as they are read: those of a batch
// of millions of samples cost no memory.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/dataset.h"
#include "engine/view/row_range.h"

namespace batchfs {

struct BatchCoordinate {
  std::string name;
  std::vector<std::string> dims;  // one
  DataType type;
  std::int64_t count = 0;  // values
  std::string note;        // as CfDecoding's
  Json attributes = Json::object();
  /// Writes some of the values to `out`.
  std::function<void(RowRange range, std::byte* out)> read;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(count) * type.itemsize; }
  /// All of the values.
  NdArray values() const;
};

/// The values [first, first + count) of an array that outlives the result.
BatchCoordinate coordinate_part(const NdArray& values, std::int64_t first, std::int64_t count);
/// All of an array.
BatchCoordinate whole_coordinate(NdArray values);

}  // namespace batchfs
