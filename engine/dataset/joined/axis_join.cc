#include "engine/dataset/joined/axis_join.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

std::string_view form_text(JoinLabels::Form form) {
  switch (form) {
    case JoinLabels::Form::times:
      return "times";
    case JoinLabels::Form::lengths_of_time:
      return "lengths of time";
    case JoinLabels::Form::whole_numbers:
    case JoinLabels::Form::numbers:
      return "numbers";
    case JoinLabels::Form::texts:
      return "texts";
  }
  return "";
}

/// Finds values among sorted ones.
template <class Value>
class Matcher {
 public:
  Matcher(const std::vector<Value>& values, const std::vector<std::int64_t>& order,
          const JoinRule& rule)
      : values_(values), order_(order), rule_(rule) {}

  /// The position of the label that stands for `wanted`.
  std::int64_t find(const Value& wanted) const {
    const auto next = std::lower_bound(
        order_.begin(), order_.end(), wanted,
        [this](std::int64_t position, const Value& value) { return at(position) < value; });
    if (next != order_.end() && at(*next) == wanted) return *next;
    if constexpr (std::is_same_v<Value, std::string>) {
      return Positions::kNone;
    } else {
      const bool has_last = next != order_.begin(), has_next = next != order_.end();
      const std::int64_t last_one = has_last ? *(next - 1) : Positions::kNone;
      const std::int64_t next_one = has_next ? *next : Positions::kNone;
      switch (rule_.pick) {
        case JoinRule::Pick::last:
          return near(last_one, wanted);
        case JoinRule::Pick::next:
          return near(next_one, wanted);
        case JoinRule::Pick::exact:
          if (!rule_.distance) return Positions::kNone;
          break;
        case JoinRule::Pick::nearest:
          break;
      }
      if (!has_last || !has_next) return near(has_last ? last_one : next_one, wanted);
      // As pandas: of two as far away the larger.
      return near(wanted - at(last_one) < at(next_one) - wanted ? last_one : next_one, wanted);
    }
  }

 private:
  const Value& at(std::int64_t position) const {
    return values_[static_cast<std::size_t>(position)];
  }
  std::int64_t near(std::int64_t position, const Value& wanted) const {
    if (position == Positions::kNone) return position;
    const Value away = at(position) < wanted ? wanted - at(position) : at(position) - wanted;
    if (rule_.distance && !(static_cast<double>(away) <= *rule_.distance)) return Positions::kNone;
    if (rule_.duration && !(away <= static_cast<Value>(*rule_.duration))) return Positions::kNone;
    return position;
  }

  const std::vector<Value>& values_;
  const std::vector<std::int64_t>& order_;
  const JoinRule& rule_;
};

/// Labels less `base`, by position.
std::vector<long double> distances(const JoinLabels& labels, long double base) {
  std::vector<long double> result;
  std::visit(
      [&](const auto& values) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(values)>, std::vector<std::string>>)
          for (const auto& value : values) result.push_back(static_cast<long double>(value) - base);
      },
      labels.values());
  return result;
}

}  // namespace

AxisJoin::AxisJoin(const JoinAxis& anchor, const JoinAxis& own, const JoinRule& rule,
                   std::string path)
    : source_(own.source),
      anchor_source_(anchor.source),
      anchor_dim_(anchor.dim),
      own_dim_(own.dim),
      path_(std::move(path)),
      rule_(rule) {
  const auto fail = [this](const std::string& why) {
    return Error(ErrorCode::invalid_argument, path_ + ": " + why);
  };
  const auto labels_of = [&](const JoinAxis& axis) {
    try {
      return JoinLabels(axis.dataset->index(axis.dim));
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}: '{}' of '{}': {}", path_, axis.dim, axis.source, error.why()),
                  error.where());
    }
  };
  JoinLabels of_anchor = labels_of(anchor), of_own = labels_of(own);
  using Form = JoinLabels::Form;
  if (of_anchor.form() != of_own.form()) {
    if (of_anchor.form() == Form::whole_numbers && of_own.form() == Form::numbers)
      of_anchor = of_anchor.as_numbers();
    else if (of_own.form() == Form::whole_numbers && of_anchor.form() == Form::numbers)
      of_own = of_own.as_numbers();
    else
      throw fail(fmt::format("'{}' of '{}' holds {}, and '{}' of '{}' holds {}", own.dim, source_,
                             form_text(of_own.form()), anchor.dim, anchor_source_,
                             form_text(of_anchor.form())));
  }
  if (of_own.form() == Form::times && of_anchor.calendar() != of_own.calendar())
    throw fail(fmt::format("'{}' of '{}' is of the calendar {}, and '{}' of '{}' of {}", own.dim,
                           source_, calendar_name(of_own.calendar()), anchor.dim, anchor_source_,
                           calendar_name(of_anchor.calendar())));
  const bool of_time = of_own.form() == Form::times || of_own.form() == Form::lengths_of_time;
  if (rule.distance && of_time)
    throw fail(fmt::format("the tolerance of {} is a length of time, as \"6h\"",
                           form_text(of_own.form())));
  if (rule.duration && !of_time)
    throw fail(fmt::format("the tolerance of {} is a number", form_text(of_own.form())));
  if (of_own.form() == Form::texts && (rule.pick != JoinRule::Pick::exact || rule.distance))
    throw fail("texts have no neighbours: only \"exact\" joins them");
  const auto refuse_twice = [&](const JoinAxis& axis, const JoinLabels& labels) {
    if (const auto twice = labels.duplicates())
      throw fail(fmt::format(
          "'{}' of '{}' has the label {} twice, at positions {} and {}", axis.dim, axis.source,
          label_text(axis.dataset->index(axis.dim), twice->first), twice->first, twice->second));
  };
  refuse_twice(own, of_own);
  if (rule.pick == JoinRule::Pick::exact) refuse_twice(anchor, of_anchor);
  anchor_ = std::make_shared<const JoinLabels>(std::move(of_anchor));
  own_ = std::make_shared<const JoinLabels>(std::move(of_own));
  positions_ = match(0);
  if (!of_time) anchor_ = own_ = nullptr;  // never asked for again
}

/// Each of the first source's positions is a cell, a time its beginning and another label its
/// middle, which holds as many cells of the source.
std::vector<std::int64_t> AxisJoin::cells(std::int64_t nanoseconds) const {
  const auto fail = [this](const std::string& why) {
    return Error(ErrorCode::invalid_argument, path_ + ": " + why);
  };
  if (anchor_->form() == JoinLabels::Form::texts) throw fail("texts have no cells");
  std::vector<long double> anchor = distances(*anchor_, 0);
  const long double base = anchor.empty() ? 0 : anchor.front();
  for (long double& label : anchor) label -= base;
  const auto count = static_cast<std::int64_t>(anchor.size());
  if (count < 2)
    throw fail(fmt::format("'{}' of '{}' has no step: a ratio needs two labels", anchor_dim_,
                           anchor_source_));
  constexpr long double kTolerance = 1e-3L;  // of a step
  const long double step = anchor.back() / static_cast<long double>(count - 1);
  for (std::int64_t i = 0; i < count; ++i)
    if (!anchor_->is_label(i) ||
        !(std::fabs(anchor[static_cast<std::size_t>(i)] - static_cast<long double>(i) * step) <=
          kTolerance * std::fabs(step)))
      throw fail(
          fmt::format("'{}' of '{}' is not evenly spaced at position {}, which a ratio needs",
                      anchor_dim_, anchor_source_, i));
  const long double fine = step / static_cast<long double>(rule_.ratio);
  const long double slack = kTolerance * std::fabs(fine);
  const bool begins = anchor_->form() == JoinLabels::Form::times;
  const long double first =
      (begins ? 0 : -static_cast<long double>(rule_.ratio - 1) / 2 * fine) + nanoseconds;
  std::vector<long double> own;
  const std::vector<long double> stored = distances(*own_, base);
  for (const std::int64_t position : own_->order())
    own.push_back(stored[static_cast<std::size_t>(position)]);
  std::vector<std::int64_t> found(static_cast<std::size_t>(count * rule_.ratio), Positions::kNone);
  if (own.empty()) return found;
  for (std::int64_t i = 0; i < count; ++i) {
    const long double begin = anchor[static_cast<std::size_t>(i)] + first;
    const long double end = begin + static_cast<long double>(rule_.ratio - 1) * fine;
    if (std::min(begin, end) < own.front() - slack || std::max(begin, end) > own.back() + slack)
      continue;  // not, or not all, of the source
    for (std::int64_t j = 0; j < rule_.ratio; ++j) {
      const long double wanted = begin + static_cast<long double>(j) * fine;
      const auto next = std::lower_bound(own.begin(), own.end(), wanted - slack);
      if (next == own.end() || *next > wanted + slack)
        throw fail(fmt::format(
            "the grids do not nest: in the cell of '{}' of '{}' at position {}, "
            "{} from its label, '{}' of '{}' has no label",
            anchor_dim_, anchor_source_, i,
            static_cast<double>(wanted - anchor[static_cast<std::size_t>(i)]), own_dim_, source_));
      found[static_cast<std::size_t>(i * rule_.ratio + j)] =
          own_->order()[static_cast<std::size_t>(next - own.begin())];
    }
  }
  return found;
}

Positions AxisJoin::match(std::int64_t nanoseconds) const {
  std::vector<std::int64_t> found(static_cast<std::size_t>(anchor_->size()), Positions::kNone);
  bool any = found.empty();
  if (rule_.ratio > 1) {
    found = cells(nanoseconds);
    any = std::any_of(found.begin(), found.end(),
                      [](std::int64_t position) { return position != Positions::kNone; });
  } else
    std::visit(
        [&](const auto& wanted) {
          using Values = std::decay_t<decltype(wanted)>;
          using Value = typename Values::value_type;
          const Matcher<Value> matcher(std::get<Values>(own_->values()), own_->order(), rule_);
          for (std::size_t i = 0; i < found.size(); ++i) {
            if (!anchor_->is_label(static_cast<std::int64_t>(i))) continue;
            if constexpr (std::is_same_v<Value, __int128>)
              found[i] = matcher.find(wanted[i] + nanoseconds);
            else
              found[i] = matcher.find(wanted[i]);
            any = any || found[i] != Positions::kNone;
          }
        },
        anchor_->values());
  if (!any)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: no label is in both: '{}' of '{}' goes from {}, '{}' of '{}' from {}",
                    path_, anchor_dim_, anchor_source_, anchor_->extent(), own_dim_, source_,
                    own_->extent()));
  return Positions::list(std::move(found));
}

Positions AxisJoin::shifted(std::int64_t nanoseconds) const {
  if (nanoseconds == 0) return positions_;
  if (own_ == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' of '{}' holds no times: its offsets are numbers", path_,
                            own_dim_, source_));
  return match(nanoseconds);
}

Positions composed(const Positions& along, const Positions& selected, std::int64_t ratio) {
  if (selected.drops_dim()) {
    Positions one = Positions::one(along[selected[0]]);
    return one;
  }
  if (selected.is_range() && selected.size() > 0)
    return along.slice(selected[0] * ratio, selected.size() * ratio);
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(selected.size() * ratio));
  for (std::int64_t i = 0; i < selected.size(); ++i)
    for (std::int64_t j = 0; j < ratio; ++j) result.push_back(along[selected[i] * ratio + j]);
  return Positions::list(std::move(result));
}

}  // namespace batchfs
