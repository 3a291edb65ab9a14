#include "fs/ino.h"

#include <xxhash.h>

namespace batchfs {

std::uint64_t shown_number(std::uint32_t reading, FileNumber number) {
  constexpr std::uint64_t kDigest = std::uint64_t{1} << 63;
  if (is_common(number) || (reading == kFirstReading && number < kDigest))
    return static_cast<std::uint64_t>(number);
  return XXH3_64bits_withSeed(&number, sizeof number, reading) | kDigest;
}

}  // namespace batchfs
