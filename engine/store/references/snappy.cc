#include "engine/store/references/snappy.h"

#include <snappy-c.h>

#include "engine/base/error.h"

namespace batchfs::references {

void decode_snappy(std::span<const std::byte> in, std::span<std::byte> out) {
  const auto* bytes = reinterpret_cast<const char*>(in.data());
  // The library writes as many bytes as the data claim.
  std::size_t size = 0;
  if (snappy_uncompressed_length(bytes, in.size(), &size) != SNAPPY_OK || size != out.size() ||
      snappy_uncompress(bytes, in.size(), reinterpret_cast<char*>(out.data()), &size) != SNAPPY_OK)
    throw Error(ErrorCode::corrupt, "the Snappy data are damaged");
}

}  // namespace batchfs::references
