#pragma once
// The envelope of every file of an Icechunk repository but its chunks: 39 bytes of header, then
// the payload, a FlatBuffer, as it is or compressed by zstd.
//
// Source: Icechunk's specification, versions 1 and 2, "File header". A file's own header selects
// how it is read: repositories hold files of both versions.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/buffer.h"
#include "engine/store/icechunk/flat_table.h"

namespace batchfs::icechunk {

enum class FileType : std::uint8_t { snapshot = 1, manifest = 2, repository = 6 };

inline constexpr std::size_t kHeaderBytes = 39;
/// Dimensions of an array; its metadata allows fewer.
inline constexpr std::uint32_t kMaxRank = 1024;

/// A file, decompressed.
struct File {
  int version = 0;
  Buffer payload;
  FlatTable root() const;
};

/// Do these first bytes of a file begin one of Icechunk's?
bool has_magic(Bytes head);

/// Throws corrupt, not_supported (a newer version, one from before 0.1.3), no_memory for a payload
/// of more than `largest` bytes.
File open_file(Bytes bytes, FileType type, std::uint64_t largest);

}  // namespace batchfs::icechunk
