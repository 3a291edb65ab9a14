#pragma once
// A file outside of a store that chunks of the store lie in.

#include <cstdint>
#include <string_view>

namespace batchfs {

/// A file in the state in which it was referred to.
struct VirtualFile {
  std::string_view location;   // a URL
  std::string_view etag;       // empty: not known
  std::uint32_t modified = 0;  // seconds since 1970, not before its last change; 0: not known
};

}  // namespace batchfs
