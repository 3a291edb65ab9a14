#pragma once
// Open files whose text is made as it is read.
//
// A text is made from its beginning on. Readers leave a cursor where they ended, from which the
// next read continues; a read at another place starts from the beginning. All files share a few
// cursors, so open files cost no memory.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/base/text_source.h"
#include "fs/files.h"

namespace batchfs {

/// Cursors that are not in use. Thread-safe.
class TextCursors {
 public:
  static constexpr std::size_t kMax = 16;

  struct Cursor {
    std::unique_ptr<TextSource> source;
    std::string piece;        // the last one of `source`
    std::uint64_t begin = 0;  // of the piece, in the text
    bool ended = false;
    std::uint64_t end() const { return begin + piece.size(); }
  };

  /// Takes the cursor of `owner` that is nearest before `offset`; without a source if there is none.
  Cursor take(const void* owner, std::uint64_t offset);
  /// Returns a cursor. Drops the least recently used ones beyond kMax.
  void put(const void* owner, Cursor cursor);
  void drop(const void* owner);
  /// Frees all memory.
  void clear();

 private:
  struct Kept {
    const void* owner;
    Cursor cursor;
  };
  std::mutex mutex_;      // guards kept_. A leaf
  std::list<Kept> kept_;  // the last used first
};

class StreamedFile final : public OpenFile {
 public:
  using Make = std::function<std::unique_ptr<TextSource>()>;

  StreamedFile(std::shared_ptr<TextCursors> cursors, Make make, Caching caching)
      : cursors_(std::move(cursors)), make_(std::move(make)), caching_(caching) {}
  ~StreamedFile() override { cursors_->drop(this); }

  Caching caching() const override { return caching_; }
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  const std::shared_ptr<TextCursors> cursors_;
  const Make make_;
  const Caching caching_;
};

/// The length of a text if it is at most `limit` bytes; nullopt: it is longer.
std::optional<std::uint64_t> length_up_to(TextSource& text, std::uint64_t limit);

}  // namespace batchfs
