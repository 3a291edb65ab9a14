#include "engine/dataset/position_lookup.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

PositionLookup::PositionLookup(const IndexLookup& labels, Positions counted)
    : labels_(labels), counted_(std::move(counted)) {}

bool PositionLookup::is_range(const SelectorPart& part) {
  return (part.from && IndexLookup::is_position(*part.from)) ||
         (part.to && IndexLookup::is_position(*part.to));
}

/// The dimension or its selection, for messages.
std::string PositionLookup::name() const {
  const bool is_whole = counted_.is_range() && counted_.size() == labels_.size();
  return fmt::format("{}'{}'", is_whole ? "" : "the selection of ", labels_.dim());
}

Error PositionLookup::outside(const std::string& text) const {
  return labels_.error(
      ErrorCode::not_found,
      fmt::format("position '{}' is outside of {}, which has {}", text, name(), counted_.size()));
}

Error PositionLookup::nothing() const {
  return labels_.error(
      ErrorCode::invalid_argument,
      fmt::format("the range of positions is empty: {} has {}", name(), counted_.size()));
}

/// Names of stations and samples may begin with '#'.
void PositionLookup::check_is_no_label(const std::string& text, std::int64_t position) const {
  if (!labels_.has_texts()) return;
  if (!labels_like_positions_) {
    labels_like_positions_.emplace();
    for (std::int64_t i = 0; i < labels_.size(); ++i)
      if (std::string label = labels_.shown(i); IndexLookup::is_position(label))
        labels_like_positions_->emplace(std::move(label), i);
  }
  const auto label = labels_like_positions_->find(text);
  if (label == labels_like_positions_->end()) return;
  std::vector<std::string> remedies;
  for (std::int64_t i = 0; i < counted_.size() && remedies.empty(); ++i)
    if (counted_[i] == label->second) remedies.push_back(fmt::format("'#{}' for the label", i));
  const bool is_selected = !remedies.empty();
  if (position >= 0 && position < counted_.size()) {
    const std::string other = labels_.shown(counted_[position]);
    if (other == text) return;
    remedies.push_back(fmt::format("'{}' for the position", other));
  }
  throw labels_.error(
      ErrorCode::invalid_argument,
      fmt::format("'{}' is a position, and '{}' has this label at another one{}{}{}", text,
                  labels_.dim(), is_selected ? "" : " outside of the selection",
                  remedies.empty() ? "" : "; write ", join(remedies, ", and ")));
}

/// Negative ones are not counted from the end yet.
std::int64_t PositionLookup::written_number(const std::string& text) const {
  std::int64_t value = 0;
  const char* begin = text.data() + 1;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(begin, end, value);
  if (failed != std::errc() || rest != end || begin == end)
    throw labels_.error(ErrorCode::invalid_argument,
                        fmt::format("'{}' is not a position; write '#3'", text));
  return value;
}

std::int64_t PositionLookup::number(const std::string& text) const {
  std::int64_t value = written_number(text);
  if (value < 0) value += counted_.size();
  check_is_no_label(text, value);
  return value;
}

std::int64_t PositionLookup::position(const std::string& text) const {
  const std::int64_t value = number(text);
  if (value < 0 || value >= counted_.size()) throw outside(text);
  return value;
}

/// From one position to another; behind the last one comes the first. The end is not included.
Positions PositionLookup::range_round(const SelectorPart& part) const {
  const std::int64_t size = counted_.size();
  const std::int64_t begin = position(*part.from), end = number(*part.to);
  if (end < 0 || end > size) throw outside(*part.to);
  const std::int64_t from = written_number(*part.from), to = written_number(*part.to);
  std::int64_t count = end - begin;
  if (from < 0 && to >= 0)
    count = to - from;  // the last positions and the first ones
  else if (count < 0)
    count += size;
  if (count == 0) throw nothing();
  if (count > size)
    throw labels_.error(ErrorCode::invalid_argument,
                        fmt::format("'{}' to '{}' goes more than once round {}, which has {}; "
                                    "leave out \"wrap\" for those between them",
                                    *part.from, *part.to, name(), size));
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back((begin + i) % size);
  return Positions::list(std::move(positions));
}

Positions PositionLookup::range(const SelectorPart& part) const {
  if (part.wrap) labels_.check_has_ends(part);
  if ((part.from && !IndexLookup::is_position(*part.from)) ||
      (part.to && !IndexLookup::is_position(*part.to)))
    throw labels_.error(ErrorCode::invalid_argument,
                        "a range is of labels or of positions, not of both");
  if (part.wrap) return range_round(part);
  const std::int64_t size = counted_.size();
  const std::int64_t begin = part.from ? std::clamp<std::int64_t>(number(*part.from), 0, size) : 0;
  const std::int64_t end = part.to ? std::clamp<std::int64_t>(number(*part.to), 0, size) : size;
  if (end <= begin) throw nothing();
  return Positions::range(begin, end - begin);
}

}  // namespace batchfs
