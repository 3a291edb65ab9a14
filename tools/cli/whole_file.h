#pragma once
// Writing a file that others may be reading.

#include <string>

namespace batchfs {

/// Writes a file whole or not at all: beside it first, then renamed over it. Where `path` is a
/// symbolic link, over the file that it leads to. A file that was there keeps its mode. Devices and
/// pipes are written to. Throws
/// access_denied or io, with `path`.
void write_whole_file(const std::string& path, const std::string& text);

}  // namespace batchfs
