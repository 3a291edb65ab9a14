#pragma once
// The central directory of a zip archive: its members and where they lie.
//
// Format: PKWARE's APPNOTE.TXT, sections 4.3 and 4.4. Like in Python's zipfile, whose archives
// zarr-python writes: bytes before the archive are allowed, and of two members with one name the
// last counts. Names are read as UTF-8, which they nearly always are. A member whose name is not a
// usable key ("..", absolute, empty components) is left out. A member that is itself broken is
// refused when it is read, not before.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/store.h"

namespace batchfs {

struct ZipMember {
  static constexpr std::uint64_t kOutside = UINT64_MAX;

  std::uint64_t header_offset =
      0;                  // of the local header in the object; kOutside when it cannot be there
  std::uint64_t end = 0;  // where the next member or the directory begins
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint32_t name_begin = 0;
  std::uint16_t name_length = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint16_t extra_length = 0;  // in the directory; the local header's may differ
};

/// Immutable.
class ZipDirectory {
 public:
  /// Reads the directory of the archive `key` of `parent`, in one round trip where it is small.
  /// Throws not_found, corrupt, not_supported (several disks, an encrypted directory), no_memory
  /// when it would take more than `memory` bytes.
  static ZipDirectory read(Store& parent, const std::string& key,
                           std::uint64_t memory = UINT64_MAX);

  /// Sorted by name, each name once. Names that end in '/' are directories.
  std::span<const ZipMember> members() const { return members_; }
  std::string_view name(const ZipMember& member) const {
    return std::string_view(names_).substr(member.name_begin, member.name_length);
  }
  /// nullptr when there is no such file.
  const ZipMember* find(std::string_view name) const;
  /// Like Store::list: directories are those that are named and those that names imply.
  std::vector<Store::Entry> list(const std::string& prefix) const;

 private:
  void parse(std::span<const std::byte> directory, std::uint64_t directory_offset,
             std::uint64_t prefix);
  void set_ends(std::uint64_t directory_offset);
  void sort_by_name();
  std::vector<ZipMember>::const_iterator first_from(std::string_view name) const;

  std::vector<ZipMember> members_;
  std::string names_;
};

}  // namespace batchfs
