#pragma once
// Views of the same data, each with another way from a row to chunks.

#include <utility>
#include <vector>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs::walked_views {

using Chunks = std::vector<std::pair<std::uint32_t, std::int64_t>>;

inline Chunks planned(const View& view, std::int64_t epoch, std::int64_t batch) {
  Chunks chunks;
  for (const ChunkUse& use : view.plan(epoch, batch).chunks)
    chunks.emplace_back(use.variable, use.chunk);
  return chunks;
}

inline const char* const kViews[] = {
    R"({"window": {"time": 1}, "batch": 3})",
    R"({"window": {"time": {"size": 3, "stride": 1}}, "batch": 7, "order": {"shuffle": "global"}})",
    R"({"window": {"time": 2, "x": {"size": 5, "stride": 2, "wrap": true}}, "batch": 1000})",
    R"({"window": {"time": {"size": 4, "edge": "partial"}}, "batch": 2})",
    R"({"window": {"time": {"size": 4, "edge": "pad"}}, "batch": 2})",
    R"({"window": {"time": 1}, "select": {"x": [0, 7, 3, 4, 1], "level": 850}, "batch": 3})",
    R"({"window": {"time": 1}, "tensors": {"a": {"variables": ["t"], "offsets": {"time": [-2, 0, 3]}},
        "b": {"variables": ["q"]}}, "batch": 4, "order": {"shuffle": "block"}})",
    R"({"xbatcher": {"input_dims": {"time": 4, "x": 3}, "input_overlap": {"x": 1}}, "variables": ["t", "q"]})",
    R"({"xbatcher": {"input_dims": {"time": 2}, "batch_dims": {"time": 6}, "concat_input_dims": true},
        "variables": ["t"]})",
};

inline MemoryData data() {
  MemoryData data;
  data.declare("t", "<f4", {"time", "level", "x"}, {23, 2, 8}, {2, 1, 3})
      .declare("q", "<f4", {"time", "x"}, {23, 8}, {5, 8})
      .index<std::int32_t>("level", "<i4", {500, 850})
      .index<double>("x", "<f8", {0, 1, 2, 3, 4, 5, 6, 7});
  return data;
}

}  // namespace batchfs::walked_views
