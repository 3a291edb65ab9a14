#include "engine/view/list/label_positions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/dataset/circle.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/length_of_time.h"
#include "engine/view/samples/duration.h"

namespace batchfs {

namespace {

/// Labels and their positions in the selection, by label.
template <class Label>
struct Sorted {
  std::vector<std::pair<Label, std::int64_t>> labels;
  bool whole = false;  // labels are integers

  void sort() { std::sort(labels.begin(), labels.end()); }
  auto from(Label label) const {
    return std::lower_bound(labels.begin(), labels.end(), std::pair(label, INT64_MIN));
  }
  /// The first with this label, and whether there are more.
  std::pair<std::int64_t, bool> equal(Label label) const {
    const auto it = from(label);
    if (it == labels.end() || it->first != label) return {-1, false};
    const auto next = it + 1;
    return {it->second, next != labels.end() && next->first == label};
  }
  /// The nearest label and how far away it is; of two as near the larger. Precondition: not empty.
  std::pair<std::int64_t, Label> nearest(Label label) const {
    const auto distance = [&](Label other) {
      if constexpr (std::is_same_v<Label, LabelNumber>)
        return label_distance(other, label, whole && is_whole(label));
      else
        return other < label ? label - other : other - label;
    };
    const auto above = from(label);
    if (above == labels.end()) {
      const auto last = from(labels.back().first);  // of equal labels the first
      return {last->second, distance(last->first)};
    }
    if (above == labels.begin()) return {above->second, distance(above->first)};
    const auto below = from((above - 1)->first);
    const Label up = distance(above->first), down = distance(below->first);
    return up <= down ? std::pair(above->second, up) : std::pair(below->second, down);
  }
};

std::optional<LabelNumber> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  LabelNumber number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = read_label_number(text.data(), end, number);
  if (error != std::errc() || at != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace

struct LabelPositions::Index {
  enum class Kind : std::uint8_t { number, time, text, other } kind = Kind::other;
  Sorted<LabelNumber> numbers;
  Sorted<__int128> times;
  std::unordered_map<std::string, std::pair<std::int64_t, bool>> texts;
  DataType type;
  std::optional<double> period;
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<LabelNumber> tolerance;        // of numbers
  std::optional<std::int64_t> time_tolerance;  // nanoseconds
};

LabelPositions::~LabelPositions() = default;
LabelPositions::LabelPositions(LabelPositions&&) noexcept = default;

LabelPositions::LabelPositions(const Dataset& dataset, std::string dim, const Positions& selected,
                               bool nearest, const std::string& tolerance, const std::string& path)
    : dim_(std::move(dim)), size_(selected.size()), nearest_(nearest) {
  const Variable* variable = dataset.index_of(dim_);
  if (variable == nullptr) return;
  const Dataset::Index& labels = dataset.index(dim_);
  const NdArray& values = labels.values;
  auto index = std::make_unique<Index>();
  index->type = values.type;
  const auto times = TimeAxis::of(labels);
  const Kind kind = values.type.kind;
  if (times) {
    index->kind = Index::Kind::time;
    index->calendar = times->calendar();
    for (std::int64_t p = 0; p < size_; ++p)
      if (const auto time = times->nanoseconds(selected[p]))
        index->times.labels.emplace_back(*time, p);
    index->times.sort();
  } else if (values.type.is_float() || values.type.is_integer()) {
    index->kind = Index::Kind::number;
    index->numbers.whole = values.type.is_integer();
    for (std::int64_t p = 0; p < size_; ++p) {
      const LabelNumber number = label_number(values, selected[p]);
      if (!std::isnan(number)) index->numbers.labels.emplace_back(number, p);
    }
    index->numbers.sort();
    index->period = period_of(*variable, values);
  } else if (kind == Kind::unicode || kind == Kind::bytes || kind == Kind::boolean) {
    index->kind = Index::Kind::text;
    for (std::int64_t p = 0; p < size_; ++p) {
      const auto [it, is_new] =
          index->texts.try_emplace(label_text(values, selected[p]), std::pair(p, false));
      if (!is_new) it->second.second = true;
    }
  }
  if (nearest && !tolerance.empty()) {
    const auto fail = [&](const char* expected) {
      return Error(ErrorCode::invalid_argument,
                   fmt::format("{}: '{}' is not {}, which the labels of '{}' need", path, tolerance,
                               expected, dim_));
    };
    if (index->kind == Index::Kind::time) {
      const auto duration = parse_duration(tolerance);
      if (!duration || duration->months != 0 || duration->nanoseconds < 0)
        throw fail("a length of time as \"3h\"");
      index->time_tolerance = duration->nanoseconds;
    } else {
      const auto number = parse_number(tolerance);
      if (!number || *number < 0) throw fail("a number");
      index->tolerance = *number;
    }
  }
  index_ = std::move(index);
}

std::int64_t LabelPositions::position(std::string_view text, std::string& why) const {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end || text.empty()) {
    why = fmt::format("'{}' is not a position of '{}'", text, dim_);
    return -1;
  }
  const std::int64_t from_start = number < 0 ? number + size_ : number;
  if (from_start < 0 || from_start >= size_) {
    why = fmt::format("there is no position {} of '{}': the selection has {}", number, dim_, size_);
    return -1;
  }
  return from_start;
}

std::int64_t LabelPositions::find(std::string_view text, std::string& why) const {
  if (text.starts_with('#')) return position(text.substr(1), why);
  if (index_ == nullptr) return position(text, why);
  const Index& index = *index_;
  const auto none = [&](const std::string& reason) -> std::int64_t {
    why = fmt::format("'{}' {}", text, reason);
    return -1;
  };
  const auto one = [&](std::pair<std::int64_t, bool> found) -> std::int64_t {
    if (found.first < 0) return none(fmt::format("is not a label of '{}' in the selection", dim_));
    if (found.second) return none(fmt::format("is several times a label of '{}'", dim_));
    return found.first;
  };
  switch (index.kind) {
    case Index::Kind::time: {
      const auto date = parse_date(std::string(text), index.calendar);
      if (!date) return none("is not a date");
      if (!nearest_) return one(index.times.equal(date->first));
      if (index.times.labels.empty()) return one({-1, false});
      const auto [found, distance] = index.times.nearest(date->first);
      if (index.time_tolerance && distance > *index.time_tolerance)
        return none(fmt::format(
            "has no label of '{}' near enough: the nearest is {} away", dim_,
            length_text(static_cast<std::int64_t>(
                std::min<std::remove_cvref_t<decltype(distance)>>(distance, INT64_MAX)))));
      return found;
    }
    case Index::Kind::number: {
      const auto number = parse_number(text);
      if (!number) return none("is not a number");
      if (!nearest_) return one(index.numbers.equal(as_stored(*number, index.type)));
      if (index.numbers.labels.empty()) return one({-1, false});
      auto best = index.numbers.nearest(*number);
      if (index.period) {
        const LabelNumber period = *index.period;
        const LabelNumber least = index.numbers.labels.front().first;
        const LabelNumber base = *number - std::floor((*number - least) / period) * period;
        for (const LabelNumber turned : {base, base - period})
          if (const auto other = index.numbers.nearest(turned); other.second < best.second)
            best = other;
      }
      if (index.tolerance && best.second > *index.tolerance)
        return none(fmt::format("has no label of '{}' near enough: the nearest is {} away", dim_,
                                static_cast<double>(best.second)));
      return best.first;
    }
    case Index::Kind::text: {
      if (nearest_)
        return none(fmt::format("cannot be compared: the labels of '{}' are text", dim_));
      const auto it = index.texts.find(std::string(text));
      return one(it == index.texts.end() ? std::pair(std::int64_t{-1}, false) : it->second);
    }
    case Index::Kind::other:
      break;
  }
  return none(fmt::format("cannot be looked up: '{}' has labels of type {}; write a position as #7",
                          dim_, index.type.name()));
}

}  // namespace batchfs
