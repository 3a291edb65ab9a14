#include "engine/write/shard_advice.h"

#include <algorithm>
#include <bit>

#include "engine/dataset/dimension_names.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kManyObjects = 100'000;
constexpr std::int64_t kSmall = 1 << 20, kShard = 64 << 20;  // bytes, decoded

std::int64_t chunks_along(const RechunkArray& array, std::size_t d, std::int64_t length) {
  const std::int64_t all = array.source->shape[d];
  return all / length + (all % length != 0 ? 1 : 0);
}

std::uint64_t objects_of(const RechunkArray& array, const Dims& object) {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < object.size(); ++d)
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(chunks_along(array, d, object[d])),
                               &count))
      return UINT64_MAX;
  return count;
}

std::int64_t chunk_bytes(const RechunkArray& array) {
  std::int64_t bytes = array.source->type.itemsize;
  for (const std::int64_t length : array.output.chunks.chunk)
    if (__builtin_mul_overflow(bytes, length, &bytes)) return INT64_MAX;
  return bytes;
}

/// Would a shard of this length be a whole number of each array's chunks along `dim`?
bool fits_all(const std::vector<RechunkArray>& arrays, const std::string& dim,
              std::int64_t length) {
  return std::all_of(arrays.begin(), arrays.end(), [&](const RechunkArray& array) {
    const std::vector<std::string> dims = dimension_names(*array.source);
    const std::string& path = array.source->path;
    // The coordinate of its own dimension has no shards.
    if (dims.size() == 1 && path.substr(path.rfind('/') + 1) == dims[0]) return true;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d] == dim && length < array.source->shape[d] &&
          length % array.output.chunks.chunk[d] != 0)
        return false;
    return true;
  });
}

}  // namespace

std::uint64_t object_count(const RechunkArray& array) {
  return objects_of(array, array.output.chunks.object);
}

std::optional<ShardAdvice> advise_on_shards(const std::vector<RechunkArray>& arrays) {
  const RechunkArray* worst = nullptr;
  for (const RechunkArray& array : arrays)
    if (array.array != nullptr && !array.output.chunks.is_sharded && chunk_bytes(array) < kSmall &&
        (worst == nullptr || object_count(array) > object_count(*worst)))
      worst = &array;
  if (worst == nullptr || object_count(*worst) < kManyObjects) return std::nullopt;
  ShardAdvice advice{.array = worst->output.path,
                     .objects = object_count(*worst),
                     .bytes = static_cast<std::uint64_t>(chunk_bytes(*worst))};
  const std::vector<std::string> dims = dimension_names(*worst->source);
  Dims object = worst->output.chunks.chunk;
  std::int64_t room = kShard / std::max<std::int64_t>(1, chunk_bytes(*worst));  // in chunks
  // The last dimensions first: their chunks are read together.
  for (std::size_t d = object.size(); d-- > 0 && room > 1;) {
    std::int64_t factor = chunks_along(*worst, d, object[d]);
    if (factor > room)
      factor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(room)));
    if (factor <= 1 || !fits_all(arrays, dims[d], factor * object[d])) continue;
    object[d] *= factor;
    room /= factor;
    advice.shards.emplace_back(dims[d], object[d]);
  }
  std::reverse(advice.shards.begin(), advice.shards.end());
  advice.remaining = objects_of(*worst, object);
  return advice;
}

}  // namespace batchfs
