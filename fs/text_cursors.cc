#include "fs/text_cursors.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace batchfs {

std::list<TextCursors::Marked>::iterator TextCursors::find_marked(const void* owner) {
  return std::find_if(marked_.begin(), marked_.end(),
                      [owner](const Marked& each) { return each.owner == owner; });
}

TextCursors::Cursor TextCursors::take(const void* owner, std::uint64_t offset) {
  Cursor cursor;
  std::shared_ptr<const TextSource> mark;
  {
    const std::lock_guard lock(mutex_);
    auto nearest = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->owner == owner && it->cursor.begin <= offset &&
          (nearest == kept_.end() || it->cursor.begin > nearest->cursor.begin))
        nearest = it;
    if (const auto marked = find_marked(owner); marked != marked_.end()) {
      marked_.splice(marked_.begin(), marked_, marked);
      const auto behind = marked->marks.upper_bound(offset);
      if (behind != marked->marks.begin() &&
          (nearest == kept_.end() || std::prev(behind)->first > nearest->cursor.end())) {
        cursor.begin = std::prev(behind)->first;
        mark = std::prev(behind)->second;
      }
    }
    if (mark == nullptr && nearest != kept_.end()) {
      cursor = std::move(nearest->cursor);
      kept_.erase(nearest);
    }
  }
  if (mark != nullptr) cursor.source = mark->fork();
  return cursor;
}

void TextCursors::put(const void* owner, Cursor cursor) {
  std::list<Kept> one, left;  // end without the lock
  one.push_back({owner, std::move(cursor)});
  const std::lock_guard lock(mutex_);
  kept_.splice(kept_.begin(), one);
  while (kept_.size() > kMax) left.splice(left.end(), kept_, std::prev(kept_.end()));
}

void TextCursors::mark(const void* owner, const Cursor& cursor) {
  const std::uint64_t at = cursor.end();
  const auto is_near = [&](const Marked& of) {
    const auto behind = of.marks.upper_bound(at);
    const std::uint64_t before = behind == of.marks.begin() ? 0 : std::prev(behind)->first;
    return at - before < of.distance ||
           (behind != of.marks.end() && behind->first - at < of.distance);
  };
  const auto is_wanted = [&] {
    const auto marked = find_marked(owner);
    return marked == marked_.end() ? at >= kFirstDistance : !is_near(*marked);
  };
  {
    const std::lock_guard lock(mutex_);
    if (!is_wanted()) return;
  }
  std::shared_ptr<const TextSource> source = cursor.source->fork();
  if (source == nullptr) return;
  std::list<Marked> left;  // ends without the lock, like `thinned`
  Marks thinned;
  const std::lock_guard lock(mutex_);
  if (!is_wanted()) return;
  auto marked = find_marked(owner);
  if (marked == marked_.end())
    marked = marked_.insert(marked_.begin(), Marked{owner, kFirstDistance, {}});
  marked_.splice(marked_.begin(), marked_, marked);
  marked->marks.emplace(at, std::move(source));
  while (marked_.size() > kMax) left.splice(left.end(), marked_, std::prev(marked_.end()));
  if (marked->marks.size() <= kMaxMarks) return;
  marked->distance *= 2;
  std::uint64_t last = 0;
  for (auto it = marked->marks.begin(); it != marked->marks.end();) {
    const auto next = std::next(it);
    if (it->first - last < marked->distance)
      thinned.insert(marked->marks.extract(it));
    else
      last = it->first;
    it = next;
  }
}

void TextCursors::drop(const void* owner) {
  std::list<Kept> left;
  std::list<Marked> marks;
  const std::lock_guard lock(mutex_);
  for (auto it = kept_.begin(); it != kept_.end();) {
    const auto next = std::next(it);
    if (it->owner == owner) left.splice(left.end(), kept_, it);
    it = next;
  }
  if (const auto marked = find_marked(owner); marked != marked_.end())
    marks.splice(marks.end(), marked_, marked);
}

void TextCursors::clear() {
  std::list<Kept> left;
  std::list<Marked> marks;
  const std::lock_guard lock(mutex_);
  left.swap(kept_);
  marks.swap(marked_);
}

}  // namespace batchfs
