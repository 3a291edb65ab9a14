#pragma once
// One page of a directory listing, as readdir(2) reads it.

#include <cstddef>
#include <string>

#include "fs/files.h"

namespace batchfs {

/// Entries of a directory from position `offset` on, as many as fit into `size` bytes, in the
/// kernel's format. Positions 0 and 1 are "." and ".."; the others are the listing's own plus 2.
std::string directory_page(const Files& files, Ino directory, std::size_t size,
                           std::uint64_t offset);

}  // namespace batchfs
