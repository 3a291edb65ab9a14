#pragma once
// A user's options for files outside of a store that its chunks lie in.

#include <string>
#include <vector>

namespace batchfs {

struct VirtualOptions {
  /// Chunks outside of the store may be read below these: "PREFIX" or "PREFIX=URL", which is then
  /// read in PREFIX's place.
  std::vector<std::string> places;
  /// Compare ETags and times of the files with those that the store knows.
  bool checks = true;
};

}  // namespace batchfs
