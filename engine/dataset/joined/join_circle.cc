#include "engine/dataset/joined/join_circle.h"

#include <algorithm>
#include <cmath>

namespace batchfs {

namespace {

/// Exact for whole numbers of 64 bits and whole periods.
double reduced(LabelNumber value, double period) {
  auto place = static_cast<double>(std::fmod(value, static_cast<LabelNumber>(period)));
  if (place < 0) place += period;
  return place < period ? place : 0;
}

}  // namespace

JoinCircle::JoinCircle(const JoinLabels& labels, double period, double rounding)
    : period_(period), rounding_(rounding) {
  const JoinLabels numbers =
      labels.form() == JoinLabels::Form::whole_numbers ? labels.as_numbers() : labels;
  const auto& values = std::get<JoinLabels::Numbers>(numbers.values());
  for (const std::int64_t position : labels.order())
    if (std::isfinite(values[static_cast<std::size_t>(position)]))
      stops_.push_back({reduced(values[static_cast<std::size_t>(position)], period_), position});
  std::sort(stops_.begin(), stops_.end(), [](const Stop& a, const Stop& b) {
    return a.place != b.place ? a.place < b.place : a.position < b.position;
  });
  std::vector<Stop> kept;
  for (const Stop& stop : stops_) {
    if (!kept.empty() && stop.place - kept.back().place <= rounding_)
      kept.back().position = std::min(kept.back().position, stop.position);
    else
      kept.push_back(stop);
  }
  if (kept.size() > 1 && up(kept.back().place, kept.front().place) <= rounding_) {
    kept.front().position = std::min(kept.front().position, kept.back().position);
    kept.pop_back();
  }
  stops_ = std::move(kept);
}

double JoinCircle::up(double from, double to) const { return reduced(to - from, period_); }

std::int64_t JoinCircle::find(LabelNumber wanted, const JoinRule& rule) const {
  if (stops_.empty() || !std::isfinite(wanted)) return Positions::kNone;
  const double place = reduced(wanted, period_);
  auto next = std::lower_bound(stops_.begin(), stops_.end(), place,
                               [](const Stop& stop, double value) { return stop.place < value; });
  if (next == stops_.end()) next = stops_.begin();
  const auto last = next == stops_.begin() ? stops_.end() - 1 : next - 1;
  const double above = up(place, next->place), below = up(last->place, place);
  if (above <= rounding_ || above >= period_ - rounding_) return next->position;
  if (below <= rounding_ || below >= period_ - rounding_) return last->position;
  const auto within = [&](const Stop& stop, double way) {
    return !rule.distance || way <= *rule.distance ? stop.position : Positions::kNone;
  };
  switch (rule.pick) {
    case JoinRule::Pick::last:
      return within(*last, below);
    case JoinRule::Pick::next:
      return within(*next, above);
    case JoinRule::Pick::exact:
      if (!rule.distance) return Positions::kNone;
      break;
    case JoinRule::Pick::nearest:
      break;
  }
  return below < above ? within(*last, below) : within(*next, above);
}

JoinCircle::Arc JoinCircle::arc() const {
  Arc arc;
  std::size_t first = 0;
  double widest = -1;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const Stop& before = stops_[i > 0 ? i - 1 : stops_.size() - 1];
    const double gap = up(before.place, stops_[i].place);
    // An even grid has gaps of one width: its smallest label is the first.
    if (gap > widest + rounding_) {
      widest = gap;
      first = i;
    }
  }
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::size_t at = (first + i) % stops_.size();
    arc.places.push_back(static_cast<long double>(stops_[at].place) +
                         (at < first ? static_cast<long double>(period_) : 0));
    arc.positions.push_back(stops_[at].position);
  }
  if (!arc.places.empty()) arc.begin = arc.places.front();
  return arc;
}

std::vector<long double> unwound(const std::vector<long double>& labels, double period) {
  std::vector<long double> result = labels;
  for (std::size_t i = 1; i < labels.size(); ++i)
    result[i] =
        result[i - 1] + std::remainder(labels[i] - labels[i - 1], static_cast<long double>(period));
  return result;
}

}  // namespace batchfs
