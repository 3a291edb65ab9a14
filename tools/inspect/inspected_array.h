#pragma once
// An array of a store as `batchfs inspect` describes it: its chunks, the type of its decoded
// values, its size in the store, and why it cannot be read.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/array/array.h"
#include "tools/cli/store_options.h"
#include "tools/inspect/coordinate_range.h"

namespace batchfs {

struct InspectedArray {
  const ArrayMetadata* metadata;
  std::string name;  // the last part of its path; "values" at the root
  std::vector<std::string> dims;
  ChunkGrid grid;  // chunks that can be read alone: in shards, the inner chunks
  bool sharded = false;
  std::optional<std::uint64_t> bytes;   // decoded; nullopt for variable lengths
  std::optional<std::uint64_t> stored;  // nullopt: not measured
  std::string unsupported;
  std::vector<std::pair<std::string, std::string>> fields;  // variables and their types
  std::optional<CfDecoding> cf;          // nullopt: values cannot be read or decoded
  std::string undecoded;                 // why the attributes cannot be decoded
  std::shared_ptr<const Array> array;    // of coordinates, else null
  std::optional<CoordinateRange> range;  // of coordinates whose values were read
  std::string unreadable;                // why the coordinate's values could not be read

  /// Is it the coordinate of its only dimension?
  bool is_coordinate() const { return dims.size() == 1 && dims.front() == name; }
  /// A text attribute, safe to show; empty if there is none.
  std::string attribute(const char* key) const;
  /// The type of the decoded values.
  const DataType& type() const;
};

/// `metadata` belongs to `opened.hierarchy`, which outlives the result. Reads no values.
InspectedArray inspect_array(const OpenedStore& opened, const ArrayMetadata& metadata);

/// Reads values of the first 64 coordinates, several at a time, see coordinate_range().
void read_ranges(std::vector<InspectedArray>& arrays);

/// Which arrays measure_stored() measures.
enum class Measure : std::uint8_t {
  quickly,  // of local stores, as many as can be listed within half a second in total
  all,
};
/// Sets `stored`. Throws not_supported if all are to be measured and the store cannot list.
void measure_stored(Store& store, std::vector<InspectedArray>& arrays, Measure which);

}  // namespace batchfs
