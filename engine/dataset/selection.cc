#include "engine/dataset/selection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/cf_time.h"
#include "engine/dataset/circle.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

class Lookup {
 public:
  Lookup(const Dataset& dataset, std::string dim, const Selector& selector)
      : dataset_(dataset),
        dim_(std::move(dim)),
        selector_(selector),
        size_(dataset.dim_size(dim_)) {}

  Positions run() {
    switch (selector_.form) {
      case Selector::Form::one: {
        const std::string& value = selector_.values.front();
        if (is_position(value)) return Positions::one(position(value));
        const Positions found = label(value);
        if (partial_date(value)) return found;  // a partial date is a range and keeps the dim
        if (found.size() != 1)
          throw error(ErrorCode::invalid_argument,
                      fmt::format("the label '{}' occurs {} times", value, found.size()));
        return Positions::one(found[0]);
      }
      case Selector::Form::list: {
        std::vector<std::int64_t> positions;
        for (const std::string& value : selector_.values) {
          if (is_position(value)) {
            positions.push_back(position(value));
          } else {
            const Positions found = label(value);
            if (found.size() != 1 && !partial_date(value))
              throw error(ErrorCode::invalid_argument,
                          fmt::format("the label '{}' occurs {} times", value, found.size()));
            for (std::int64_t i = 0; i < found.size(); ++i) positions.push_back(found[i]);
          }
        }
        return Positions::list(std::move(positions));
      }
      case Selector::Form::range:
        return range();
    }
    return Positions::range(0, size_);
  }

 private:
  static bool is_position(const std::string& text) { return !text.empty() && text.front() == '#'; }

  Error error(ErrorCode code, const std::string& why) const {
    return Error(code,
                 fmt::format("{}: {}", selector_.where.empty() ? dim_ : selector_.where, why));
  }

  /// "#-4" -> a number; negative counts from the end.
  std::int64_t position_number(const std::string& text) const {
    std::int64_t value = 0;
    const char* begin = text.data() + 1;
    const char* end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(begin, end, value);
    if (failed != std::errc() || rest != end || begin == end)
      throw error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is no position; write '#3'", text));
    return value < 0 ? value + size_ : value;
  }

  std::int64_t position(const std::string& text) const {
    const std::int64_t value = position_number(text);
    if (value < 0 || value >= size_)
      throw error(ErrorCode::not_found,
                  fmt::format("position '{}' is outside of '{}', which has {}", text, dim_, size_));
    return value;
  }

  const NdArray& values() const {
    try {
      return dataset_.index_values(dim_);
    } catch (const Error& cause) {
      Error named = error(cause.code(), cause.why());
      throw named.at(cause.where());
    }
  }

  bool is_time() const { return values().type.kind == Kind::datetime; }
  bool is_text() const {
    return values().type.kind == Kind::bytes || values().type.kind == Kind::unicode;
  }

  /// As in pandas: a date that is coarser than the index is a range, else it is one label.
  bool partial_date(const std::string& text) const {
    if (!is_time()) return false;
    const auto parsed = parse_date(text);
    return parsed && parsed->level < index_level();
  }

  /// How fine the index is, in DateRange's levels; daily and coarser data are of level 2.
  int index_level() const {
    int level = 2;
    const NdArray& v = values();
    for (std::int64_t i = 0; i < size_ && level < 5; ++i) {
      const std::optional<__int128> time = nanoseconds(v, i);
      if (!time || *time % (86400 * kNanosecondsPerSecond) == 0) continue;
      const __int128 t = *time;
      level = std::max(level, t % (3600 * kNanosecondsPerSecond) == 0 ? 3
                              : t % (60 * kNanosecondsPerSecond) == 0 ? 4
                                                                      : 5);
    }
    return level;
  }

  /// Of a time; nullopt for NaT. Times of whole seconds reach beyond what 64 bits of nanoseconds
  /// hold.
  static std::optional<__int128> nanoseconds(const NdArray& v, std::int64_t i) {
    return time_nanoseconds(label_count(v, i), v.type);
  }

  template <class Test>
  Positions matching(Test&& test) const {
    std::vector<std::int64_t> found;
    const NdArray& v = values();
    for (std::int64_t i = 0; i < size_; ++i) {
      const std::optional<__int128> t = nanoseconds(v, i);
      if (t && test(*t)) found.push_back(i);
    }
    return Positions::list(std::move(found));
  }

  /// What stands behind the number of a length of time, "6h" or "30m", in counts of the index.
  std::optional<double> duration_unit(std::string_view unit) const {
    DataType typed = make_type(Kind::timedelta, 8);
    typed.unit = unit;
    const std::optional<std::int64_t> nanoseconds = unit_nanoseconds(typed),
                                      count = unit_nanoseconds(values().type);
    if (values().type.kind != Kind::timedelta || !nanoseconds || !count) return std::nullopt;
    return static_cast<double>(*nanoseconds) / static_cast<double>(*count);
  }

  double parse_number(const std::string& text) const {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(text.data(), end, value);
    if (failed == std::errc())
      if (const auto unit =
              duration_unit(std::string_view(rest, static_cast<std::size_t>(end - rest))))
        return value * *unit;
    if (values().type.kind == Kind::timedelta && (failed != std::errc() || rest != end))
      throw error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is no length of time; write 6h, 30m or 2D", text));
    if (failed != std::errc() || rest != end)
      throw error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a number, as '{}' needs{}{}", text, dim_, note(),
                              meant_range(text)));
    return value;
  }

  /// Why times are numbers.
  std::string note() const {
    const Variable* index = dataset_.index_of(dim_);
    return index == nullptr || index->cf.note.empty() ? "" : ": it holds " + index->cf.note;
  }

  /// A float32 coordinate holds 0.1f, which is what a user means by 0.1.
  double as_stored(double number) const {
    const DataType& type = values().type;
    if (!type.is_float() || type.itemsize == 8) return number;
    return type.itemsize == 4 ? static_cast<double>(static_cast<float>(number))
                              : static_cast<double>(static_cast<_Float16>(number));
  }

  DateRange date(const std::string& text) const {
    const auto parsed = parse_date(text);
    if (!parsed)
      throw error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a date; write 2000-01-31 or 2000-01-31T06:00{}", text,
                              meant_range(text)));
    return *parsed;
  }

  Positions label(const std::string& text) const {
    const NdArray& v = values();
    Positions found;
    if (is_time()) {
      const DateRange wanted = date(text);
      const bool range = partial_date(text);
      found = matching([&](__int128 t) {
        return range ? t >= wanted.first && t <= wanted.last : t == wanted.first;
      });
    } else if (is_text()) {
      std::vector<std::int64_t> at;
      for (std::int64_t i = 0; i < size_; ++i)
        if (label_text(v, i) == text) at.push_back(i);
      found = Positions::list(std::move(at));
    } else {
      const double wanted = as_stored(parse_number(text));
      std::int64_t whole = 0;  // compared exactly: doubles hold no more than 53 bits
      const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), whole);
      const bool is_whole = failed == std::errc() && rest == text.data() + text.size() &&
                            v.type.itemsize == 8 && v.type.kind == Kind::signed_int;
      std::vector<std::int64_t> at;
      for (std::int64_t i = 0; i < size_; ++i)
        if (is_whole ? label_count(v, i) == whole : label_number(v, i) == wanted) at.push_back(i);
      found = Positions::list(std::move(at));
    }
    if (found.size() == 0)
      throw error(ErrorCode::not_found, fmt::format("no '{}' in '{}', which {}{}", text, dim_,
                                                    extent(), nearest_label(text)));
    return found;
  }

  /// "goes from 0 to 359".
  std::string extent() const {
    if (size_ == 0) return "goes from nothing to nothing";
    return fmt::format("goes from {} to {}", label_text(values(), 0),
                       label_text(values(), size_ - 1));
  }

  /// "; the nearest is 500", or nothing.
  std::string nearest_label(const std::string& text) const {
    if (is_text()) {
      constexpr std::int64_t kMaxCompared = 4096;
      std::vector<std::string> labels;
      for (std::int64_t i = 0; i < std::min(size_, kMaxCompared); ++i)
        labels.push_back(label_text(values(), i));
      return did_you_mean(text, labels);
    }
    std::function<double(std::int64_t)> distance;
    if (is_time()) {
      const __int128 wanted = date(text).first;
      distance = [this, wanted](std::int64_t i) {
        const auto time = nanoseconds(values(), i);
        return time ? std::fabs(static_cast<double>(*time - wanted)) : NAN;
      };
    } else {
      const double wanted = parse_number(text);
      const double period = this->period().value_or(0);
      distance = [this, wanted, period](std::int64_t i) {
        const double straight = std::fabs(label_number(values(), i) - wanted);
        return period > 0 ? std::fabs(std::remainder(straight, period)) : straight;
      };
    }
    std::int64_t nearest = -1;
    double least = INFINITY;
    for (std::int64_t i = 0; i < size_; ++i)
      if (const double here = distance(i); here < least) {
        nearest = i;
        least = here;
      }
    return nearest < 0 ? "" : "; the nearest is " + label_text(values(), nearest);
  }

  /// What lies in a range; throws when it is nothing.
  Positions some(Positions found) const {
    if (found.size() == 0)
      throw error(ErrorCode::not_found,
                  fmt::format("nothing of '{}' lies in this range; it {}", dim_, extent()));
    return found;
  }

  /// The period of a cyclic coordinate.
  std::optional<double> period() const {
    const Variable* index = dataset_.index_of(dim_);
    return index == nullptr ? std::nullopt : period_of(*index, values());
  }

  /// From one position to another, going on at the beginning. The end is not included.
  Positions positions_round() const {
    const std::int64_t begin = position(*selector_.from), end = position_number(*selector_.to);
    if (end < 0 || end > size_)
      throw error(ErrorCode::not_found,
                  fmt::format("position '{}' is outside of '{}', which has {}", *selector_.to, dim_,
                              size_));
    if (begin == end) throw error(ErrorCode::invalid_argument, "the range of positions is empty");
    std::vector<std::int64_t> positions;
    for (std::int64_t i = begin; i != end; i = i + 1 == size_ && end != size_ ? 0 : i + 1)
      positions.push_back(i);
    return Positions::list(std::move(positions));
  }

  /// A range of numbers with `wrap`.
  Positions circle_range() const {
    const auto circle = period();
    if (!circle)
      throw error(
          ErrorCode::invalid_argument,
          fmt::format(
              "'{}' is not cyclic: \"wrap\" is for longitudes and other angles in degrees, and for "
              "ranges of positions",
              dim_));
    const double from = parse_number(*selector_.from), to = parse_number(*selector_.to);
    if (!(std::fabs(to - from) <= *circle))
      throw error(ErrorCode::invalid_argument,
                  fmt::format("{} to {} is more than once round; the ends differ by at most {}",
                              *selector_.from, *selector_.to, *circle));
    return some(Positions::list(positions_on_circle(values(), *circle, from, to)));
  }

  /// Throws if a range without `wrap` means something else on a circle than between two numbers.
  void check_circle(double from, double to, bool descending, std::size_t found) const {
    const auto circle = period();
    if (!circle) return;
    if (from > to && !descending)
      throw error(ErrorCode::invalid_argument,
                  fmt::format("{} is more than {}, so this range of '{}' goes round; write {}, or "
                              "the smaller one first for "
                              "all between them",
                              *selector_.from, *selector_.to, dim_, selector_.with_wrap));
    const double low = std::min(from, to), high = std::max(from, to);
    const auto round = positions_on_circle(values(), *circle, low, std::min(high, low + *circle));
    if (round.size() > found)
      throw error(ErrorCode::invalid_argument,
                  fmt::format("'{}' {}, so {} to {} goes over its end; write {}", dim_, extent(),
                              *selector_.from, *selector_.to, selector_.with_wrap));
  }

  Positions range() const {
    if (selector_.wrap && (!selector_.from || !selector_.to))
      throw error(ErrorCode::invalid_argument, "a range with \"wrap\" needs both ends");
    const bool from_position = selector_.from && is_position(*selector_.from);
    const bool to_position = selector_.to && is_position(*selector_.to);
    if (from_position || to_position) {
      if ((selector_.from && !from_position) || (selector_.to && !to_position))
        throw error(ErrorCode::invalid_argument,
                    "a range is of labels or of positions, not of both");
      if (selector_.wrap) return positions_round();
      const std::int64_t begin =
          from_position ? std::clamp<std::int64_t>(position_number(*selector_.from), 0, size_) : 0;
      const std::int64_t end =
          to_position ? std::clamp<std::int64_t>(position_number(*selector_.to), 0, size_) : size_;
      if (end <= begin) throw error(ErrorCode::invalid_argument, "the range of positions is empty");
      return Positions::range(begin, end - begin);
    }
    if (!selector_.from && !selector_.to) return Positions::range(0, size_);
    if (selector_.wrap) return circle_range();
    const NdArray& v = values();
    std::vector<std::int64_t> found;
    if (is_time()) {
      std::optional<DateRange> from, to;
      if (selector_.from) from = date(*selector_.from);
      if (selector_.to) to = date(*selector_.to);
      // Open ends follow the stored order, as below.
      const auto first = size_ > 1 ? nanoseconds(v, 0) : std::nullopt,
                 last = size_ > 1 ? nanoseconds(v, size_ - 1) : first;
      const bool descending = first && last && *last < *first;
      if (from && to ? to->last < from->first : descending) std::swap(from, to);
      return some(matching(
          [&](__int128 t) { return (!from || t >= from->first) && (!to || t <= to->last); }));
    } else if (is_text()) {
      std::optional<std::string> from = selector_.from, to = selector_.to;
      if (from && to && *to < *from) std::swap(from, to);
      for (std::int64_t i = 0; i < size_; ++i) {
        const std::string text = label_text(v, i);
        if ((!from || text >= *from) && (!to || text <= *to)) found.push_back(i);
      }
    } else {
      double low = -INFINITY, high = INFINITY;
      // Open ends follow the stored order: "500:" on a descending coordinate goes down from 500.
      const bool descending = size_ > 1 && label_number(v, size_ - 1) < label_number(v, 0);
      if (selector_.from)
        (descending && !selector_.to ? high : low) = parse_number(*selector_.from);
      if (selector_.to) (descending && !selector_.from ? low : high) = parse_number(*selector_.to);
      const double from = low, to = high;
      if (low > high) std::swap(low, high);
      low = as_stored(low);
      high = as_stored(high);
      for (std::int64_t i = 0; i < size_; ++i) {
        const double number = label_number(v, i);
        if (number >= low && number <= high) found.push_back(i);
      }
      if (selector_.from && selector_.to) check_circle(from, to, descending, found.size());
    }
    return some(Positions::list(std::move(found)));
  }

  const Dataset& dataset_;
  const std::string dim_;
  const Selector& selector_;
  const std::int64_t size_;
};

}  // namespace

Positions select(const Dataset& dataset, const std::string& dim, const Selector& selector) {
  return Lookup(dataset, dim, selector).run();
}

}  // namespace batchfs
