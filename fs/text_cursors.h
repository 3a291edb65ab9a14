#pragma once
// Places in texts that are made piece by piece, from which a reader can continue.

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/base/text_source.h"

namespace batchfs {

/// Cursors that are not in use, and marks. Thread-safe.
class TextCursors {
 public:
  static constexpr std::size_t kMax = 16;
  /// Marks of one text, and bytes between them at first. Where there are more, the distance doubles,
  /// so that they are at most 1/32 of the text apart.
  static constexpr std::size_t kMaxMarks = 64;
  static constexpr std::uint64_t kFirstDistance = 256 << 10;

  struct Cursor {
    std::unique_ptr<TextSource> source;
    std::string piece;        // the last one of `source`
    std::uint64_t begin = 0;  // of the piece, in the text
    bool ended = false;
    std::uint64_t end() const { return begin + piece.size(); }
  };

  /// Takes the cursor of `owner` that is nearest before `offset`, or makes one at a mark that is
  /// nearer; without a source if there is none.
  Cursor take(const void* owner, std::uint64_t offset);
  /// Returns a cursor. Drops the least recently used ones beyond kMax.
  void put(const void* owner, Cursor cursor);
  /// Leaves a mark at the end of the cursor's piece if no other is near. Marks of at most kMax
  /// owners are kept.
  void mark(const void* owner, const Cursor& cursor);
  void drop(const void* owner);
  /// Frees all memory.
  void clear();

 private:
  struct Kept {
    const void* owner;
    Cursor cursor;
  };
  using Marks = std::map<std::uint64_t, std::shared_ptr<const TextSource>>;  // by offset
  struct Marked {
    const void* owner;
    std::uint64_t distance = kFirstDistance;
    Marks marks;
  };
  std::list<Marked>::iterator find_marked(const void* owner);

  std::mutex mutex_;          // guards the members below. A leaf
  std::list<Kept> kept_;      // the last used first
  std::list<Marked> marked_;  // the last used first
};

}  // namespace batchfs
