#pragma once
// Headers of tar archives (POSIX.1-1988, "ustar"), without times and owners: equal members result
// in equal bytes.

#include <cstdint>
#include <string>

namespace batchfs {

/// The 512 bytes before a member's data. Throws not_supported for a name of more than 100 bytes,
/// or 8 GB and more.
std::string tar_header(const std::string& name, std::uint64_t size);
/// Zeros that pad a member of this size to a whole block.
std::string tar_padding(std::uint64_t size);
/// End-of-archive marker.
std::string tar_end();

}  // namespace batchfs
