#include "engine/dataset/joined/axis_join.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/dataset/circle.h"
#include "engine/dataset/joined/join_circle.h"
#include "engine/dataset/joined/nested_cells.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/units.h"

namespace batchfs {

namespace {

constexpr double kWholeTurn = 360;

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
      // Like pandas: of two equally distant labels the larger.
      return near(distance(last_one, wanted) < distance(next_one, wanted) ? last_one : next_one,
                  wanted);
    }
  }

 private:
  const Value& at(std::int64_t position) const {
    return values_[static_cast<std::size_t>(position)];
  }
  Value distance(std::int64_t position, const Value& wanted) const {
    if constexpr (std::is_same_v<Value, LabelNumber>)
      return label_distance(at(position), wanted, false);
    else
      return at(position) < wanted ? wanted - at(position) : at(position) - wanted;
  }
  std::int64_t near(std::int64_t position, const Value& wanted) const {
    if (position == Positions::kNone) return position;
    const Value away = distance(position, wanted);
    if (rule_.distance && !(static_cast<LabelNumber>(away) <= *rule_.distance))
      return Positions::kNone;
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
  for (std::int64_t i = 0; i < labels.size(); ++i)
    if (!labels.is_label(i)) result[static_cast<std::size_t>(i)] = NAN;
  return result;
}

std::int64_t matched(const std::vector<std::int64_t>& positions) {
  return static_cast<std::int64_t>(positions.size()) -
         std::count(positions.begin(), positions.end(), Positions::kNone);
}

std::string units_along(const JoinAxis& axis) {
  return units_of(*axis.dataset->index_of(axis.dim));
}

/// Labels in other units are other places, unless all of them are equal: then the text is wrong.
bool differ_in_units(const JoinAxis& anchor, const JoinAxis& own, const JoinLabels& anchor_labels,
                     const JoinLabels& own_labels) {
  const std::string one = units_along(anchor), two = units_along(own);
  return !one.empty() && !two.empty() && !are_same_units(one, two) &&
         anchor_labels.values() != own_labels.values();
}

}  // namespace

bool has_longitudes(const JoinAxis& axis) {
  const Variable* index = axis.dataset->index_of(axis.dim);
  return index != nullptr && period_of(*index, axis.dataset->index_values(axis.dim)).has_value();
}

std::string JoinRule::text(const std::string& as) const {
  Json json = Json::object();
  if (!as.empty()) json["as"] = as;
  constexpr const char* kPicks[] = {"exact", "nearest", "last", "next"};
  if (pick != Pick::exact) json["pick"] = kPicks[static_cast<int>(pick)];
  if (distance) json["tolerance"] = static_cast<double>(*distance);
  if (ratio > 1) json["ratio"] = ratio;
  if (coarser > 1) json["ratio"] = fmt::format("1/{}", coarser);
  if (period && *period == std::floor(*period))
    json["period"] = static_cast<std::int64_t>(*period);
  else if (period)
    json["period"] = *period;
  if (pads) json["missing"] = "pad";
  std::string text;
  for (const auto& [key, value] : json.items())
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", key, value.dump());
  return "{" + text + "}";
}

AxisJoin::AxisJoin(const JoinAxis& anchor, const JoinAxis& own, const JoinRule& rule,
                   std::string path)
    : source_(own.source),
      anchor_source_(anchor.source),
      anchor_dim_(anchor.dim),
      own_dim_(own.dim),
      path_(std::move(path)),
      rule_(rule) {
  const auto fail = [this](const std::string& why) { return failure(why); };
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
  const bool is_number = of_own.form() == Form::numbers || of_own.form() == Form::whole_numbers;
  if (rule.period && !is_number)
    throw fail(fmt::format("a period is of numbers, as longitudes; '{}' of '{}' holds {}", own.dim,
                           source_, form_text(of_own.form())));
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
  if (is_number) {
    for (const JoinAxis* axis : {&anchor, &own})
      if (const DataType& type = axis->dataset->index_values(axis->dim).type; type.is_float())
        rounding_ = std::max(rounding_, circle_rounding(type, rule.period.value_or(kWholeTurn)));
    if (!rule.period && (has_longitudes(anchor) || has_longitudes(own))) check_circle();
  }
  positions_ = match(0);
  if (is_number && differ_in_units(anchor, own, *anchor_, *own_))
    throw fail(fmt::format("'{}' of '{}' is in '{}', and '{}' of '{}' in '{}'; convert one of them",
                           own.dim, source_, units_along(own), anchor.dim, anchor_source_,
                           units_along(anchor)));
  if (!of_time) anchor_ = own_ = nullptr;  // never used again
}

Error AxisJoin::failure(const std::string& why) const {
  return Error(ErrorCode::invalid_argument, path_ + ": " + why);
}

/// Throws where longitudes are from -180 to 180 in one store and from 0 to 360 in the other: half
/// of the world would be missing, or have the values of another place.
void AxisJoin::check_circle() const {
  JoinRule round = rule_;
  round.period = kWholeTurn;
  const auto count = [this](const JoinRule& rule) -> std::int64_t {
    try {
      return matched(find(rule, 0));
    } catch (const Error&) {
      return 0;  // cells that do not nest
    }
  };
  std::int64_t now = count(rule_), on_circle = count(round);
  if (rule_.pick != JoinRule::Pick::exact && !own_->order().empty()) {
    // Every label has a neighbour; one a whole turn away may be nearer.
    const auto all = distances(*own_, 0);
    const long double low = all[static_cast<std::size_t>(own_->order().front())];
    const long double high = all[static_cast<std::size_t>(own_->order().back())];
    now = on_circle = 0;
    for (const long double label : distances(*anchor_, 0)) {
      if (std::isnan(label)) continue;
      const long double turned =
          label - kWholeTurn * std::floor((label - low) / static_cast<long double>(kWholeTurn));
      now += label >= low && label <= high ? 1 : 0;
      on_circle += turned >= low && turned <= high ? 1 : 0;
    }
  }
  if (on_circle <= now) return;
  throw failure(fmt::format(
      "'{}' of '{}' goes from {}, and '{}' of '{}' from {}: {} of {} labels match, and {} on a "
      "circle; write \"join\": {{\"{}\": {}}}",
      anchor_dim_, anchor_source_, anchor_->extent(), own_dim_, source_, own_->extent(),
      now / rule_.ratio, anchor_->size(), on_circle / rule_.ratio, own_dim_,
      round.text(own_dim_ == anchor_dim_ ? "" : anchor_dim_)));
}

std::vector<std::int64_t> AxisJoin::nested(const JoinRule& rule, std::int64_t nanoseconds) const {
  if (anchor_->form() == JoinLabels::Form::texts) throw failure("texts have no cells");
  NestedGrids grids;
  grids.begins = anchor_->form() == JoinLabels::Form::times;
  grids.anchor_name = fmt::format("'{}' of '{}'", anchor_dim_, anchor_source_);
  grids.own_name = fmt::format("'{}' of '{}'", own_dim_, source_);
  grids.anchor = distances(*anchor_, 0);
  if (rule.period) {
    grids.period = *rule.period;
    grids.anchor = unwound(grids.anchor, *rule.period);
    JoinCircle::Arc arc = JoinCircle(*own_, *rule.period, rounding_).arc();
    grids.own = std::move(arc.places);
    grids.own_positions = std::move(arc.positions);
  } else {
    const long double base =
        grids.anchor.empty() || std::isnan(grids.anchor.front()) ? 0 : grids.anchor.front();
    for (long double& label : grids.anchor) label -= base;
    const std::vector<long double> stored = distances(*own_, base);
    grids.own_positions = own_->order();
    for (const std::int64_t position : grids.own_positions)
      grids.own.push_back(stored[static_cast<std::size_t>(position)]);
  }
  try {
    return rule.coarser > 1 ? coarser_cells(grids, rule.coarser, nanoseconds)
                            : finer_cells(grids, rule.ratio, nanoseconds);
  } catch (const Error& error) {
    throw failure(error.why());
  }
}

std::vector<std::int64_t> AxisJoin::find(const JoinRule& rule, std::int64_t nanoseconds) const {
  if (rule.ratio > 1 || rule.coarser > 1) return nested(rule, nanoseconds);
  std::vector<std::int64_t> found(static_cast<std::size_t>(anchor_->size()), Positions::kNone);
  if (rule.period) {
    const JoinCircle circle(*own_, *rule.period, rounding_);
    const std::vector<long double> wanted = distances(*anchor_, 0);
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = circle.find(wanted[i], rule);
    return found;
  }
  std::visit(
      [&](const auto& wanted) {
        using Values = std::decay_t<decltype(wanted)>;
        using Value = typename Values::value_type;
        const Matcher<Value> matcher(std::get<Values>(own_->values()), own_->order(), rule);
        for (std::size_t i = 0; i < found.size(); ++i) {
          if (!anchor_->is_label(static_cast<std::int64_t>(i))) continue;
          if constexpr (std::is_same_v<Value, __int128>)
            found[i] = matcher.find(wanted[i] + nanoseconds);
          else
            found[i] = matcher.find(wanted[i]);
        }
      },
      anchor_->values());
  return found;
}

Positions AxisJoin::match(std::int64_t nanoseconds) const {
  std::vector<std::int64_t> found = find(rule_, nanoseconds);
  if (!found.empty() && matched(found) == 0)
    throw failure(fmt::format(
        "no label is in both: '{}' of '{}' goes from {}, '{}' of '{}' from {}", anchor_dim_,
        anchor_source_, anchor_->extent(), own_dim_, source_, own_->extent()));
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
