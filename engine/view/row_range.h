#pragma once
// Some rows of a batch, one after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs {

struct RowRange {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

/// The entries of a list for these rows; none if the list is not by rows (xbatcher: one sample).
inline std::span<const std::int64_t> in_range(std::span<const std::int64_t> list, RowRange range) {
  if (static_cast<std::size_t>(range.end()) > list.size()) return {};
  return list.subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count));
}

/// Rows that are processed together: enough to amortize a call, few enough to cost no memory.
inline constexpr std::int64_t kRowsAtATime = 512;

/// Calls `use(part)` for rows, kRowsAtATime at most at a time.
template <class Use>
void for_each_range(RowRange rows, Use&& use) {
  for (std::int64_t first = rows.first; first < rows.end(); first += kRowsAtATime)
    use(RowRange{first, std::min(kRowsAtATime, rows.end() - first)});
}
template <class Use>
void for_each_range(std::int64_t count, Use&& use) {
  for_each_range(RowRange{0, count}, use);
}

}  // namespace batchfs
