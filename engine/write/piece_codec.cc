#include "engine/write/piece_codec.h"

#include <cstring>

#include <blosc.h>
#include <xxhash.h>

#include "engine/write/compression.h"

namespace batchfs {

namespace {

using Checksum = std::uint64_t;

const Compression& slab_compression() {
  static const Compression compression{Compression::Method::blosc, 1, "lz4"};
  return compression;
}

Checksum checksum_of(std::span<const std::byte> values) {
  return XXH3_64bits(values.data(), values.size());
}

}  // namespace

std::uint64_t encoded_slab_bound(std::uint64_t decoded) {
  return sizeof(Checksum) + compressed_bound(slab_compression(), decoded);
}

Buffer encode_slab(std::span<const std::byte> values, std::uint32_t itemsize) {
  const Buffer frame = compress(slab_compression(), itemsize, values);
  const Checksum checksum = checksum_of(values);
  Buffer stored(sizeof checksum + frame.size());
  std::memcpy(stored.data(), &checksum, sizeof checksum);
  std::memcpy(stored.data() + sizeof checksum, frame.data(), frame.size());
  return stored;
}

bool decode_slab(std::span<const std::byte> stored, std::span<std::byte> values) {
  Checksum checksum;
  if (stored.size() < sizeof checksum + BLOSC_MIN_HEADER_LENGTH) return false;
  std::memcpy(&checksum, stored.data(), sizeof checksum);
  const std::span<const std::byte> frame = stored.subspan(sizeof checksum);
  std::size_t decoded = 0;
  if (blosc_cbuffer_validate(frame.data(), frame.size(), &decoded) < 0) return false;
  if (decoded != values.size()) return false;
  const int got = blosc_decompress_ctx(frame.data(), values.data(), values.size(), 1);
  return got >= 0 && static_cast<std::size_t>(got) == values.size() &&
         checksum_of(values) == checksum;
}

}  // namespace batchfs
