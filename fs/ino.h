#pragma once
// Numbers of files.
//
//   FileNumber  a Tree's number, by arithmetic: a file or directory of one reading of the store
//   Ino         the kernel's number of an inode: never reused for another file while the session
//               lasts, see generations/known_inodes.h
//   shown       the inode number that stat(2) shows: a function of the reading and of the
//               FileNumber, so that it is the same in every mount of the same store
//
// The root and the control files have the same numbers in every reading, of all three kinds.

#include <cstdint>

namespace batchfs {

using Ino = std::uint64_t;
__extension__ using FileNumber = unsigned __int128;

inline constexpr Ino kRootIno = 1;
/// The numbers up to here are the same in every Tree, and mean the same.
inline constexpr Ino kMaxCommonIno = 7;

constexpr bool is_common(FileNumber number) { return number <= kMaxCommonIno; }

/// The first reading of a session.
inline constexpr std::uint32_t kFirstReading = 1;

/// The shown number. For the first reading, the number itself if it fits 63 bits; else a digest
/// above these, equal for two files with negligible probability.
std::uint64_t shown_number(std::uint32_t reading, FileNumber number);

}  // namespace batchfs
