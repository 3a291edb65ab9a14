#pragma once
// Which arrays of a store a copy holds, and in which chunks.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/array/array.h"
#include "engine/write/output_array.h"
#include "engine/write/rechunk_plan.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// Elements by the name of a dimension; kWholeDim: all of it.
using LengthByDim = std::map<std::string, std::int64_t>;
inline constexpr std::int64_t kWholeDim = -1;

/// "time=1,latitude=721,level=-1". Throws invalid_argument, `option` in the message.
LengthByDim parse_lengths(const std::string& text, const std::string& option);

struct RechunkOptions {
  LengthByDim chunks, shards;  // dimensions without an entry keep the chunks that they have
  Compression compression;
  int format = 3;
  std::vector<std::string> variables;  // names in the group; empty: all
  std::string group;                   // the group that is copied, to the root of the output
  int threads = 0;                     // 0: one per core
  std::uint64_t memory = 0;            // bytes
  bool remote_output = false;          // then more objects are put at a time
  int task = 0, tasks = 1;
};

struct RechunkArray {
  std::shared_ptr<const ArrayMetadata> source;
  std::unique_ptr<Array> array;  // null for strings of any length
  OutputArray output;
  RechunkPlan plan;  // unused for strings: they are copied at once
};

/// With `variables`, these and the coordinates of their dimensions and those that they name. Arrays
/// that are the coordinate of their own dimension keep their chunks. Throws not_found with the
/// nearest name, invalid_argument, not_supported naming the array. The plans are made later.
std::vector<RechunkArray> choose_arrays(const std::shared_ptr<Store>& store,
                                        const std::shared_ptr<const Hierarchy>& hierarchy,
                                        const RechunkOptions& options);

/// The path of a node of the group `group`, from that group.
std::string path_below(const std::string& path, const std::string& group);

}  // namespace batchfs
