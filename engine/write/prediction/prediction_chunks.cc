#include "engine/write/prediction/prediction_chunks.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/write/region_boxes.h"

namespace batchfs {

namespace {

constexpr double kChunkBytes = 4 << 20;

Dims default_chunk(const PredictedArray& array) {
  Dims sizes;
  double bytes = array.type.itemsize;
  for (const PredictedAxis& axis : array.axes) {
    sizes.push_back(axis.window < 0 || axis.extent() > 1 ? axis.length : 1);
    bytes *= static_cast<double>(sizes.back());
  }
  for (std::int64_t& size : sizes)
    while (bytes > kChunkBytes && size > 1) {
      const std::int64_t half = (size + 1) / 2;
      bytes *= static_cast<double>(half) / static_cast<double>(size);
      size = half;
    }
  return sizes;
}

void check(const PredictedArray& array, const char* keyword,
           const std::map<std::string, std::int64_t>& lengths) {
  for (const auto& [name, length] : lengths) {
    std::vector<std::string> names;
    for (const PredictedAxis& axis : array.axes) names.push_back(axis.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}= names '{}', and '{}' has {}", keyword, name, array.name,
                              fmt::join(names, ", ")));
    if (length < 1 && length != -1)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}= has {} for '{}': pass a number of elements, or -1 for all of "
                              "them",
                              keyword, length, name));
  }
}

}  // namespace

OutputChunks prediction_chunks(const PredictedArray& array, const PredictionOptions& options) {
  check(array, "chunks", options.chunks);
  check(array, "shards", options.shards);
  OutputChunks chunks{default_chunk(array), {}};
  for (std::size_t d = 0; d < array.axes.size(); ++d) {
    const PredictedAxis& axis = array.axes[d];
    std::int64_t& chunk = chunks.chunk[d];
    if (const auto given = options.chunks.find(axis.name); given != options.chunks.end())
      chunk = given->second == -1 ? axis.length : std::min(given->second, axis.length);
    chunk = std::max<std::int64_t>(1, chunk);
    std::int64_t object = chunk;
    if (const auto given = options.shards.find(axis.name); given != options.shards.end()) {
      const std::int64_t whole = std::max<std::int64_t>(1, ceil_div(axis.length, chunk)) * chunk;
      object = given->second == -1 ? whole : given->second;
      if (object % chunk != 0)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("shards of {} along '{}' are not a whole number of chunks of {}",
                                object, axis.name, chunk));
      // Beyond the array a shard has nothing.
      object = std::min(object, whole);
    }
    chunks.object.push_back(object);
  }
  chunks.is_sharded =
      !(chunks.object == chunks.chunk);  // a shard of one chunk would only add an index
  return chunks;
}

}  // namespace batchfs
