#pragma once
// Numbers of things, as people write them.

#include <cstdint>
#include <string>

namespace batchfs {

/// "1,000 samples", "1 sample"; `several` where it is not `one` with an s.
std::string counted(std::int64_t count, const std::string& one, const std::string& several = "");

}  // namespace batchfs
