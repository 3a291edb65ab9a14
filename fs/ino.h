#pragma once
// Inode numbers of the mount.
//
//   bits 0 to 59   what a Tree gives: a file or directory of one reading of the store
//   bits 60 to 63  the tag of that reading, see generations/generations.h
//
// The root and the control files have the same numbers in every reading, and no tag.

#include <cstdint>

namespace batchfs {

using Ino = std::uint64_t;
inline constexpr Ino kRootIno = 1;
/// The numbers up to here are the same in every Tree, and mean the same.
inline constexpr Ino kMaxCommonIno = 7;

inline constexpr int kTagShift = 60;
inline constexpr unsigned kTags = 16;

constexpr Ino tagged(Ino ino, unsigned tag) {
  return ino <= kMaxCommonIno ? ino : ino | Ino{tag} << kTagShift;
}
constexpr unsigned tag_of(Ino ino) { return static_cast<unsigned>(ino >> kTagShift); }
constexpr Ino untagged(Ino ino) { return ino & ((Ino{1} << kTagShift) - 1); }

}  // namespace batchfs
