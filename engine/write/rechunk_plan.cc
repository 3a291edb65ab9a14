#include "engine/write/rechunk_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

/// A multiple of `unit` that covers at least `length` of `all` elements; all of them where that is
/// the same.
std::int64_t rounded_up(std::int64_t length, std::int64_t unit, std::int64_t all) {
  if (length >= all) return all;
  return std::min(all, (length + unit - 1) / unit * unit);
}

/// The shortest length that is a whole number of both, or all elements.
std::int64_t shared_length(std::int64_t a, std::int64_t b, std::int64_t all) {
  if (a >= all || b >= all) return all;
  const std::int64_t common = std::gcd(a, b);
  return a / common > all / b ? all : std::min(all, a / common * b);
}

std::uint64_t region_bytes(const Dims& region, std::uint64_t itemsize) {
  std::uint64_t bytes = itemsize;
  for (const std::int64_t length : region)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(length), &bytes))
      return std::numeric_limits<std::uint64_t>::max();
  return bytes;
}

/// Grows a region of whole `unit`s towards `goal`, the last dimension first, within the limit.
Dims grown(Dims region, const Dims& unit, const Dims& goal, const Dims& shape,
           std::uint64_t itemsize, std::uint64_t limit) {
  for (std::size_t d = region.size(); d-- > 0;) {
    if (region[d] >= goal[d]) continue;
    const std::uint64_t others =
        region_bytes(region, itemsize) / static_cast<std::uint64_t>(region[d]);
    const auto room = static_cast<std::int64_t>(
        std::min<std::uint64_t>(limit / std::max<std::uint64_t>(others, 1), INT64_MAX));
    const std::int64_t wanted = rounded_up(goal[d], unit[d], shape[d]);
    region[d] = wanted <= room ? wanted : std::max(region[d], room / unit[d] * unit[d]);
  }
  return region;
}

}  // namespace

RechunkPlan plan_rechunk(const Dims& shape, std::uint64_t itemsize, const Dims& read_chunk,
                         const Dims& object, std::uint64_t limit) {
  Dims all = shape, both(shape.size()), read(shape.size()), write(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    all[d] = std::max<std::int64_t>(shape[d], 1);
    both[d] = shared_length(read_chunk[d], object[d], all[d]);
    read[d] = std::min(read_chunk[d], all[d]);
    write[d] = std::min(object[d], all[d]);
  }
  RechunkPlan plan{both, both};
  plan.read_bytes = plan.write_bytes = region_bytes(both, itemsize);
  if (plan.read_bytes <= limit) return plan;
  // The encoded pieces of a region are held until all are encoded.
  const std::uint64_t read_limit = limit / 16 * 7;
  const auto check = [](std::uint64_t bytes, std::uint64_t room) {
    if (bytes > room)
      throw Error(ErrorCode::no_memory,
                  fmt::format("a chunk, or an object of the output, has {} decoded, and {} of the "
                              "memory are for it; raise --memory or choose smaller chunks",
                              format_size(bytes), format_size(room)));
  };
  check(region_bytes(read, itemsize), read_limit);
  check(region_bytes(write, itemsize), limit);
  plan.two_passes = true;
  plan.write_region = grown(write, write, read, all, itemsize, limit);
  plan.read_region = grown(read, read, plan.write_region, all, itemsize, read_limit);
  plan.read_bytes = region_bytes(plan.read_region, itemsize);
  plan.write_bytes = region_bytes(plan.write_region, itemsize);
  return plan;
}

}  // namespace batchfs
