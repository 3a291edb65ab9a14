#pragma once
// Writing a file that others may be reading.

#include <string>

namespace batchfs {

/// Writes a file whole or not at all: beside it first, then renamed over it. Throws access_denied
/// or io, with `path`.
void write_whole_file(const std::string& path, const std::string& text);

}  // namespace batchfs
