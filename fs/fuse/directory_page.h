#pragma once
// What readdir(2) gets at a time.

#include <cstddef>
#include <string>

#include "fs/files.h"

namespace batchfs {

/// Entries of a directory from position `offset` on, as many as fit into `size` bytes, as the
/// kernel reads them. Positions: 0 and 1 are "." and "..", the rest is the listing's own plus 2.
std::string directory_page(const Files& files, Ino directory, std::size_t size,
                           std::uint64_t offset);

}  // namespace batchfs
