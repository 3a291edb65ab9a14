#include "engine/base/shown_line.h"

#include <fmt/format.h>

#include "engine/base/printable.h"
#include "engine/base/utf8.h"

namespace batchfs {

std::string shown_line(std::string_view text, std::size_t max) {
  std::string line = printable(text);
  if (line.size() <= max) return line;
  constexpr std::size_t kMark = 40;  // the text in place of the middle
  // A message begins with the event and ends with its place.
  std::size_t head = (max - kMark) / 3 * 2, tail = line.size() - (max - kMark) / 3;
  while (head > 0 && is_utf8_tail(line[head])) --head;
  while (tail < line.size() && is_utf8_tail(line[tail])) ++tail;
  return fmt::format("{} [... {} bytes ...] {}", line.substr(0, head), tail - head,
                     line.substr(tail));
}

}  // namespace batchfs
