#pragma once
// Snappy's raw format, as Parquet uses it for pages, by libsnappy.

#include <cstddef>
#include <span>

namespace batchfs::references {

/// Decodes `in`, which must decode to exactly `out`. Throws corrupt.
void decode_snappy(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace batchfs::references
