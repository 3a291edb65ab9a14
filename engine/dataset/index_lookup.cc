#include "engine/dataset/index_lookup.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/circle.h"
#include "engine/dataset/length_of_time.h"

namespace batchfs {

namespace {

constexpr __int128 kSecond = kNanosecondsPerSecond;

bool is_of_texts(const DataType& type) {
  return type.kind == Kind::bytes || type.kind == Kind::unicode;
}

constexpr const char* kLengths = "write 6h, 30min or 2d";

/// A number of a unit of time, "h" or "d", in others of `count` nanoseconds; nullopt for no unit.
std::optional<LabelNumber> counts_of(LabelNumber number, std::string_view unit,
                                     std::int64_t count) {
  const std::optional<std::int64_t> nanoseconds = length_unit(unit);
  if (!nanoseconds) return std::nullopt;
  if (is_whole(number))
    return number * static_cast<LabelNumber>(*nanoseconds) / static_cast<LabelNumber>(count);
  return static_cast<double>(number) *
         (static_cast<double>(*nanoseconds) / static_cast<double>(count));
}

/// "6h", "30min", "1.5d": a number of a unit in nanoseconds; nullopt for anything else.
std::optional<LabelNumber> parse_duration(const std::string& text) {
  LabelNumber value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = read_label_number(text.data(), end, value);
  if (failed != std::errc()) return std::nullopt;
  return counts_of(value, {rest, static_cast<std::size_t>(end - rest)}, 1);
}

}  // namespace

IndexLookup::IndexLookup(const Dataset& dataset, std::string dim, std::string where)
    : dataset_(dataset),
      dim_(std::move(dim)),
      where_(std::move(where)),
      size_(dataset.dim_size(dim_)) {}

Error IndexLookup::error(ErrorCode code, const std::string& why) const {
  return Error(code, fmt::format("{}: {}", where_.empty() ? dim_ : where_, why));
}

bool IndexLookup::is_position(const std::string& text) {
  return !text.empty() && text.front() == '#';
}

bool IndexLookup::has_texts() const {
  const Variable* const variable = dataset_.index_of(dim_);
  return variable != nullptr &&
         (variable->strings != nullptr ||
          (variable->array != nullptr && is_of_texts(variable->array->type())));
}

// ---- labels ----

const Dataset::Index& IndexLookup::index() const {
  try {
    return dataset_.index(dim_);
  } catch (const Error& cause) {
    Error named = error(cause.code(), cause.why());
    throw named.at(cause.where());
  }
}

bool IndexLookup::is_text() const { return is_of_texts(values().type); }

std::optional<TimeAxis> IndexLookup::times() const { return TimeAxis::of(index()); }

bool IndexLookup::partial_date(const std::string& text) const {
  const auto axis = times();
  const auto parsed = axis ? parse_date(text, axis->calendar()) : std::nullopt;
  return parsed && parsed->level < index_level();
}

/// How fine the index is, in DateRange's levels; daily and coarser data are of level 2.
int IndexLookup::index_level() const {
  int level = 2;
  const auto axis = times();
  for (std::int64_t i = 0; i < size_ && level < 5; ++i) {
    const std::optional<__int128> time = axis->nanoseconds(i);
    if (!time || *time % (86400 * kSecond) == 0) continue;
    level = std::max(level, *time % (3600 * kSecond) == 0 ? 3
                            : *time % (60 * kSecond) == 0 ? 4
                                                          : 5);
  }
  return level;
}

template <class Test>
IndexLookup::List IndexLookup::matching(Test&& test) const {
  List found;
  const auto axis = times();
  for (std::int64_t i = 0; i < size_; ++i) {
    const std::optional<__int128> time = axis->nanoseconds(i);
    if (time && test(*time)) found.push_back(i);
  }
  return found;
}

/// A length of time, "6h" or "30min", in counts of the index.
std::optional<LabelNumber> IndexLookup::counted(LabelNumber number, std::string_view unit) const {
  if (values().type.kind != Kind::timedelta) return std::nullopt;
  const std::optional<std::int64_t> count = unit_nanoseconds(values().type);
  return count ? counts_of(number, unit, *count) : std::nullopt;
}

LabelNumber IndexLookup::parse_number(const std::string& text) const {
  LabelNumber value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = read_label_number(text.data(), end, value);
  if (failed == std::errc())
    if (const auto counts =
            counted(value, std::string_view(rest, static_cast<std::size_t>(end - rest))))
      return *counts;
  if (values().type.kind == Kind::timedelta && (failed != std::errc() || rest != end))
    throw error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a length of time; {}", text, kLengths));
  if (values().type.kind == Kind::boolean && (text == "true" || text == "false"))
    return text == "true" ? 1 : 0;
  if (failed != std::errc() || rest != end) {
    const std::string& note = index().cf.note;  // why times are numbers
    throw error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a number, as '{}' needs{}{}{}", text, dim_,
                            note.empty() ? "" : ": it holds ", note, meant_range(text)));
  }
  return value;
}

LabelNumber IndexLookup::parse_label(const std::string& text) const {
  return as_stored(parse_number(text), values().type);
}

DateRange IndexLookup::date(const std::string& text) const {
  const Calendar calendar = times()->calendar();
  if (const auto parsed = parse_date(text, calendar)) return *parsed;
  throw error(
      ErrorCode::invalid_argument,
      parse_date_text(text)
          ? fmt::format("'{}' is not a date of the calendar {}", text, calendar_name(calendar))
          : fmt::format("'{}' is not a date; write 2000-01-31 or 2000-01-31T06:00{}", text,
                        meant_range(text)));
}

IndexLookup::Distinct IndexLookup::find_times(const std::vector<std::string>& texts) const {
  struct DatePeriod {
    __int128 last;
    std::size_t list;
  };
  // By first nanosecond. Periods of a level do not overlap: years, months, days, ..., single times.
  constexpr int kSingle = 6;
  std::map<int, std::map<__int128, DatePeriod>> spans;
  Distinct found;
  const int level = index_level();
  for (const std::string& text : texts) {
    const DateRange wanted = date(text);
    const bool is_period = wanted.level < level;
    const auto [span, is_new] = spans[is_period ? wanted.level : kSingle].try_emplace(
        wanted.first, DatePeriod{is_period ? wanted.last : wanted.first, found.lists.size()});
    if (is_new) found.lists.emplace_back();
    found.list_of.push_back(span->second.list);
    found.is_period.push_back(is_period);
  }
  const auto axis = times();
  for (std::int64_t i = 0; i < size_; ++i) {
    const std::optional<__int128> time = axis->nanoseconds(i);
    if (!time) continue;
    for (const auto& [_, of_level] : spans) {
      const auto after = of_level.upper_bound(*time);
      if (after == of_level.begin()) continue;
      const DatePeriod& span = std::prev(after)->second;
      if (*time <= span.last) found.lists[span.list].push_back(i);
    }
  }
  return found;
}

IndexLookup::Distinct IndexLookup::find_texts(const std::vector<std::string>& texts) const {
  std::unordered_map<std::string_view, std::size_t> lists;
  Distinct found{.lists = {}, .list_of = {}, .is_period = std::vector<bool>(texts.size())};
  for (const std::string& text : texts)
    found.list_of.push_back(lists.try_emplace(text, lists.size()).first->second);
  found.lists.resize(lists.size());
  for (std::int64_t i = 0; i < size_; ++i)
    if (const auto same = lists.find(label_text(values(), i)); same != lists.end())
      found.lists[same->second].push_back(i);
  return found;
}

IndexLookup::Distinct IndexLookup::find_numbers(const std::vector<std::string>& texts) const {
  std::unordered_map<LabelNumber, std::size_t> lists;
  Distinct found{.lists = {}, .list_of = {}, .is_period = std::vector<bool>(texts.size())};
  for (const std::string& text : texts)
    found.list_of.push_back(lists.try_emplace(parse_label(text), lists.size()).first->second);
  found.lists.resize(lists.size());
  for (std::int64_t i = 0; i < size_; ++i)
    if (const auto same = lists.find(label_number(values(), i)); same != lists.end())
      found.lists[same->second].push_back(i);
  return found;
}

std::vector<IndexLookup::LabelPositions> IndexLookup::labels(
    const std::vector<std::string>& texts) const {
  if (texts.empty()) return {};  // a dimension may have no labels
  Distinct found = is_time()   ? find_times(texts)
                   : is_text() ? find_texts(texts)
                               : find_numbers(texts);
  std::vector<Positions> lists;
  for (List& list : found.lists) lists.push_back(Positions::list(std::move(list)));
  std::vector<LabelPositions> labels;
  for (std::size_t n = 0; n < texts.size(); ++n) {
    labels.push_back({lists[found.list_of[n]], found.is_period[n]});
    if (labels.back().positions.size() == 0)
      throw error(ErrorCode::not_found, fmt::format("no '{}' in '{}', which {}{}", texts[n], dim_,
                                                    extent(), nearest_label(texts[n])));
  }
  return labels;
}

std::string IndexLookup::extent() const {
  if (size_ == 0) return "goes from nothing to nothing";
  return fmt::format("goes from {} to {}", label_text(index(), 0), label_text(index(), size_ - 1));
}

std::string IndexLookup::shown(std::int64_t position) const {
  return dataset_.index_of(dim_) == nullptr ? fmt::format("#{}", position)
                                            : label_text(index(), position);
}

std::function<LabelNumber(std::int64_t)> IndexLookup::distance_from(const std::string& text) const {
  if (const auto axis = times()) {
    const __int128 wanted = date(text).first;
    return [axis, wanted](std::int64_t i) -> LabelNumber {
      const auto time = axis->nanoseconds(i);
      return time ? std::fabs(static_cast<LabelNumber>(*time - wanted)) : NAN;
    };
  }
  const LabelNumber wanted = parse_label(text);
  const LabelNumber period = this->period().value_or(0);
  const bool whole = !values().type.is_float() && is_whole(wanted);
  return [&v = values(), wanted, period, whole](std::int64_t i) {
    const LabelNumber straight = label_distance(label_number(v, i), wanted, whole);
    return period > 0 ? std::fabs(std::remainder(straight, period)) : straight;
  };
}

/// "; the nearest is 500", or nothing.
std::string IndexLookup::nearest_label(const std::string& text) const {
  if (is_text()) {
    constexpr std::int64_t kMaxCompared = 4096;
    std::vector<std::string> labels;
    for (std::int64_t i = 0; i < std::min(size_, kMaxCompared); ++i)
      labels.push_back(label_text(values(), i));
    return did_you_mean(text, labels);
  }
  const auto distance = distance_from(text);
  std::int64_t nearest = -1;
  LabelNumber least = INFINITY;
  for (std::int64_t i = 0; i < size_; ++i)
    if (const LabelNumber here = distance(i); here < least) {
      nearest = i;
      least = here;
    }
  return nearest < 0 ? "" : "; the nearest is " + label_text(index(), nearest);
}

std::int64_t IndexLookup::nearest(const std::string& text,
                                  const std::optional<std::string>& tolerance) const {
  if (is_position(text))
    throw error(ErrorCode::invalid_argument,
                fmt::format("\"nearest\" is for labels, and '{}' is a position", text));
  if (is_text())
    throw error(ErrorCode::invalid_argument,
                fmt::format("'{}' holds text: \"nearest\" is for numbers and times", dim_));
  const auto axis = times();
  LabelNumber most = INFINITY;
  if (tolerance && axis) {
    const auto duration = parse_duration(*tolerance);
    if (!duration)
      throw error(
          ErrorCode::invalid_argument,
          fmt::format("the tolerance '{}' is not a length of time; {}", *tolerance, kLengths));
    most = *duration;
  } else if (tolerance) {
    most = parse_number(*tolerance);
  }
  if (!(most >= 0))
    throw error(ErrorCode::invalid_argument,
                fmt::format("the tolerance '{}' is less than 0", *tolerance));
  const auto distance = distance_from(text);
  // If two are equally distant, also by rounding: the nearer one on the same side, else the larger
  // one.
  const auto above = [&](std::int64_t i) {
    return axis ? *axis->nanoseconds(i) > date(text).first
                : label_number(values(), i) > parse_label(text);
  };
  const auto wins = [&](std::int64_t a, std::int64_t b) {
    const bool larger = axis ? *axis->nanoseconds(a) > *axis->nanoseconds(b)
                             : label_number(values(), a) > label_number(values(), b);
    return above(a) && above(b) ? !larger : larger;
  };
  std::int64_t nearest = -1;
  LabelNumber least = INFINITY;
  for (std::int64_t i = 0; i < size_; ++i) {
    const LabelNumber here = distance(i);
    if (!(here < least || (here == least && nearest >= 0 && wins(i, nearest)))) continue;
    nearest = i;
    least = here;
  }
  if (nearest < 0)
    throw error(ErrorCode::not_found, fmt::format("'{}' has no label next to '{}'", dim_, text));
  if (least > most)
    throw error(ErrorCode::not_found,
                fmt::format("no label of '{}' within {} of '{}'; the nearest is {}", dim_,
                            *tolerance, text, label_text(index(), nearest)));
  return nearest;
}

// ---- ranges ----

/// Returns the positions in a range; throws when it is empty.
Positions IndexLookup::some(List found) const {
  if (found.empty())
    throw error(ErrorCode::not_found,
                fmt::format("nothing of '{}' lies in this range; it {}", dim_, extent()));
  return Positions::list(std::move(found));
}

/// The period of a cyclic coordinate.
std::optional<double> IndexLookup::period() const {
  const Variable* variable = dataset_.index_of(dim_);
  return variable == nullptr ? std::nullopt : period_of(*variable, values());
}

/// A range of numbers with `wrap`.
Positions IndexLookup::circle_range(const SelectorPart& part) const {
  const auto circle = period();
  if (!circle)
    throw error(
        ErrorCode::invalid_argument,
        fmt::format(
            "'{}' is not cyclic: \"wrap\" is for longitudes and other angles in degrees, and for "
            "ranges of positions",
            dim_));
  const auto from = static_cast<double>(parse_number(*part.from)),
             to = static_cast<double>(parse_number(*part.to));
  if (!(std::fabs(to - from) <= *circle))
    throw error(ErrorCode::invalid_argument,
                fmt::format("{} to {} is more than once round; the ends differ by at most {}",
                            *part.from, *part.to, *circle));
  return some(positions_on_circle(values(), *circle, from, to));
}

/// Throws if a range without `wrap` means something else on a circle than between two numbers.
void IndexLookup::check_circle(const SelectorPart& part, double from, double to, bool descending,
                               std::size_t found) const {
  const auto circle = period();
  if (!circle) return;
  if (from > to && !descending)
    throw error(ErrorCode::invalid_argument,
                fmt::format("{} is more than {}, so this range of '{}' goes round; write {}, or "
                            "the smaller one first for "
                            "all between them",
                            *part.from, *part.to, dim_, part.with_wrap));
  const double low = std::min(from, to), high = std::max(from, to);
  const auto round = positions_on_circle(values(), *circle, low, std::min(high, low + *circle));
  if (round.size() > found)
    throw error(ErrorCode::invalid_argument,
                fmt::format("'{}' {}, so {} to {} goes over its end; write {}", dim_, extent(),
                            *part.from, *part.to, part.with_wrap));
}

void IndexLookup::check_has_ends(const SelectorPart& part) const {
  if (!part.from || !part.to)
    throw error(ErrorCode::invalid_argument, "a range with \"wrap\" needs both ends");
}

Positions IndexLookup::range(const SelectorPart& part) const {
  if (part.wrap) check_has_ends(part);
  if (!part.from && !part.to) return Positions::range(0, size_);
  if (part.wrap) return circle_range(part);
  return some(is_time()   ? range_of_times(part)
              : is_text() ? range_of_texts(part)
                          : range_of_numbers(part));
}

IndexLookup::List IndexLookup::range_of_times(const SelectorPart& part) const {
  std::optional<DateRange> from, to;
  if (part.from) from = date(*part.from);
  if (part.to) to = date(*part.to);
  // Open ends follow the stored order, as below.
  const auto axis = times();
  const auto first = size_ > 1 ? axis->nanoseconds(0) : std::nullopt,
             last = size_ > 1 ? axis->nanoseconds(size_ - 1) : first;
  const bool descending = first && last && *last < *first;
  if (from && to ? to->last < from->first : descending) std::swap(from, to);
  return matching(
      [&](__int128 t) { return (!from || t >= from->first) && (!to || t <= to->last); });
}

IndexLookup::List IndexLookup::range_of_texts(const SelectorPart& part) const {
  List found;
  std::optional<std::string> from = part.from, to = part.to;
  if (from && to && *to < *from) std::swap(from, to);
  for (std::int64_t i = 0; i < size_; ++i) {
    const std::string text = label_text(values(), i);
    if ((!from || text >= *from) && (!to || text <= *to)) found.push_back(i);
  }
  return found;
}

IndexLookup::List IndexLookup::range_of_numbers(const SelectorPart& part) const {
  const NdArray& v = values();
  List found;
  LabelNumber low = -INFINITY, high = INFINITY;
  // Open ends follow the stored order: "500:" on a descending coordinate goes down from 500.
  const bool descending = size_ > 1 && label_number(v, size_ - 1) < label_number(v, 0);
  if (part.from) (descending && !part.to ? high : low) = parse_number(*part.from);
  if (part.to) (descending && !part.from ? low : high) = parse_number(*part.to);
  const auto from = static_cast<double>(low), to = static_cast<double>(high);
  if (low > high) std::swap(low, high);
  low = as_stored(low, v.type);
  high = as_stored(high, v.type);
  for (std::int64_t i = 0; i < size_; ++i) {
    const LabelNumber number = label_number(v, i);
    if (number >= low && number <= high) found.push_back(i);
  }
  if (part.from && part.to) check_circle(part, from, to, descending, found.size());
  return found;
}

}  // namespace batchfs
