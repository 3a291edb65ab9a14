#include "engine/store/icechunk/file.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/decompression.h"

namespace batchfs::icechunk {

namespace {

constexpr std::string_view kMagic =
    "ICE\xf0\x9f\xa7\x8a"
    "CHUNK";
constexpr std::size_t kVersionAt = 36, kTypeAt = 37, kCompressionAt = 38;
constexpr int kNewestVersion = 2;
constexpr std::string_view kIdentifier = "Ichk";
/// FlatBuffers cannot be larger: their offsets are 32 bits wide, some of them with a sign.
constexpr std::uint64_t kMaxPayload = (std::uint64_t{1} << 31) - 1;

const char* name_of(int type) {
  switch (type) {
    case 1:
      return "a snapshot";
    case 2:
      return "a manifest";
    case 3:
      return "attributes";
    case 4:
      return "a transaction log";
    case 5:
      return "a chunk";
    case 6:
      return "the repository's entry";
    default:
      return "something unknown";
  }
}

Error too_large(std::uint64_t largest) {
  return Error(ErrorCode::no_memory,
               fmt::format("decompressed it takes more than the {} of memory that there are for "
                           "it; give more with --memory",
                           format_size(largest)));
}

}  // namespace

bool has_magic(Bytes head) {
  return head.size() >= kMagic.size() &&
         std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

FlatTable File::root() const { return FlatTable::root(payload.span(), kIdentifier); }

File open_file(Bytes bytes, FileType type, std::uint64_t largest) {
  largest = std::min(largest, kMaxPayload);
  if (!has_magic(bytes)) throw Error(ErrorCode::corrupt, "this is not a file of Icechunk's");
  if (bytes.size() < kHeaderBytes) throw Error(ErrorCode::corrupt, "the file is cut short");
  const int version = std::to_integer<int>(bytes[kVersionAt]);
  if (version < 1 || version > kNewestVersion)
    throw Error(ErrorCode::not_supported,
                fmt::format("it has version {} of Icechunk's format; this batchfs reads versions "
                            "1 and 2",
                            version));
  const int found = std::to_integer<int>(bytes[kTypeAt]);
  if (found != static_cast<int>(type))
    throw Error(ErrorCode::corrupt, fmt::format("it is {}, {} was expected", name_of(found),
                                                name_of(static_cast<int>(type))));
  const int compression = std::to_integer<int>(bytes[kCompressionAt]);
  const Bytes payload = bytes.subspan(kHeaderBytes);
  File file{version, {}};
  if (compression == 1) {
    file.payload = decompress_zstd_frame(payload, largest);
  } else if (compression == 0) {
    if (payload.size() > largest) throw too_large(largest);
    file.payload = Buffer(payload.size());
    std::copy(payload.begin(), payload.end(), file.payload.data());
  } else {
    throw Error(ErrorCode::not_supported,
                fmt::format("it is compressed by method {}, which is unknown", compression));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.payload.data()),
                              file.payload.size());
  if (version == 1 && text.size() >= 8 && text.substr(4, 4) != kIdentifier)
    throw Error(ErrorCode::not_supported,
                "it was written by Icechunk 0.1.2 or before, whose format nothing reads any more");
  return file;
}

}  // namespace batchfs::icechunk
