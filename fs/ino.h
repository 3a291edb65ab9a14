#pragma once
// Numbers of files.
//
//   FileNumber  what a Tree gives, by arithmetic: a file or directory of one reading of the store
//   Ino         what the kernel knows an inode by: never given to another file while the session
//               lasts, see generations/known_inodes.h
//   shown       what stat(2) shows as the inode number: a function of the reading and of the
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

/// Of the first reading, the number itself where it has 63 bits at most; else a digest above these,
/// equal for two files with negligible probability.
std::uint64_t shown_number(std::uint32_t reading, FileNumber number);

}  // namespace batchfs
