#include "engine/view/list/start_rule.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

StartRule::StartRule(const WindowDim& window, std::int64_t length,
                     std::pair<std::int64_t, std::int64_t> offsets, const Reach& reach, bool center)
    : window_(window), length_(length), offsets_(offsets), center_(center) {
  first_ = window.wrap ? 0 : -offsets.first;
  last_ = window.wrap     ? length - 1
          : window.padded ? length - 1 - offsets.second
                          : length - window.size - offsets.second;
  const std::int64_t size = window.padded ? 1 : window.size;
  for (const Reach::Labelled& each : reach.labelled) {
    lacking_.resize(static_cast<std::size_t>(length));
    for (std::int64_t start = 0; start < length; ++start)
      for (std::size_t o = 0; o < each.labels->size(); ++o)
        if (const std::int64_t first = each.labels->first(o, start);
            first < 0 || first + size > length)
          lacking_[static_cast<std::size_t>(start)] = true;
  }
  for (const Reach::Lacking& each : reach.lacking) {
    unmatched_.resize(static_cast<std::size_t>(length));
    for (std::int64_t start = 0; start < length; ++start)
      if (each.touches(start, window.size)) unmatched_[static_cast<std::size_t>(start)] = true;
  }
}

std::string StartRule::why(std::int64_t position) const {
  if (position < 0 || position >= length_)
    return fmt::format("'{}' has no position {}: the selection has {}", dim(), position, length_);
  const std::int64_t start = center_ ? position - window_.size / 2 : position;
  if (start >= first_ && start <= last_)
    return fmt::format("along '{}' the window at {} {}", dim(), start,
                       is_marked(unmatched_, start) ? "needs labels that another source lacks"
                                                    : "has not the labels of its offsets");
  const std::int64_t begin = start + std::min<std::int64_t>(offsets_.first, 0);
  const std::int64_t end = start + window_.size + offsets_.second;
  std::string text =
      fmt::format("along '{}' its window needs the positions {} to {}, and the selection has {}",
                  dim(), begin, end - 1, length_);
  if (begin >= 0 && start + offsets_.second < length_)
    text += "; \"edge\": \"pad\" fills what lies outside";
  return text;
}

}  // namespace batchfs
