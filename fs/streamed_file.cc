#include "fs/streamed_file.h"

#include <algorithm>
#include <utility>

namespace batchfs {

TextCursors::Cursor TextCursors::take(const void* owner, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  auto nearest = kept_.end();
  for (auto it = kept_.begin(); it != kept_.end(); ++it)
    if (it->owner == owner && it->cursor.begin <= offset &&
        (nearest == kept_.end() || it->cursor.begin > nearest->cursor.begin))
      nearest = it;
  if (nearest == kept_.end()) return {};
  Cursor cursor = std::move(nearest->cursor);
  kept_.erase(nearest);
  return cursor;
}

void TextCursors::put(const void* owner, Cursor cursor) {
  std::list<Kept> one, left;  // end without the lock
  one.push_back({owner, std::move(cursor)});
  const std::lock_guard lock(mutex_);
  kept_.splice(kept_.begin(), one);
  while (kept_.size() > kMax) left.splice(left.end(), kept_, std::prev(kept_.end()));
}

void TextCursors::drop(const void* owner) {
  std::list<Kept> left;
  const std::lock_guard lock(mutex_);
  for (auto it = kept_.begin(); it != kept_.end();) {
    const auto next = std::next(it);
    if (it->owner == owner) left.splice(left.end(), kept_, it);
    it = next;
  }
}

void TextCursors::clear() {
  std::list<Kept> left;
  const std::lock_guard lock(mutex_);
  left.swap(kept_);
}

void StreamedFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  std::string text;
  try {
    TextCursors::Cursor cursor = cursors_->take(this, offset);
    if (cursor.source == nullptr) cursor.source = make_();
    while (text.size() < size) {
      const std::uint64_t at = offset + text.size();
      if (at < cursor.end()) {
        text.append(cursor.piece, at - cursor.begin, size - text.size());
        continue;
      }
      if (cursor.ended) break;
      std::string piece = cursor.source->next();
      cursor.ended = piece.empty();
      cursor.begin = cursor.end();
      cursor.piece = std::move(piece);
    }
    cursors_->put(this, std::move(cursor));
  } catch (...) {
    return done({}, std::current_exception());
  }
  const Bytes bytes = std::as_bytes(std::span(text));
  done({&bytes, 1}, nullptr);
}

std::optional<std::uint64_t> length_up_to(TextSource& text, std::uint64_t limit) {
  std::uint64_t length = 0;
  while (length <= limit) {
    const std::size_t more = text.next().size();
    if (more == 0) return length;
    length += more;
  }
  return std::nullopt;
}

}  // namespace batchfs
