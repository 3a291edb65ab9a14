#include "engine/dataset/selection.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>

#include <fmt/format.h>

#include "engine/dataset/index_lookup.h"
#include "engine/dataset/position_lookup.h"

namespace batchfs {

namespace {

using List = IndexLookup::List;

List listed(const Positions& positions) {
  List list;
  for (std::int64_t i = 0; i < positions.size(); ++i) list.push_back(positions[i]);
  return list;
}

/// Labels are looked up among the stored ones, as positions of the store. Everything else is a
/// place: a position in `selected`.
class Selection {
 public:
  Selection(const Dataset& dataset, const std::string& dim, const Selector& selector,
            const Positions& selected)
      : dataset_(dataset),
        dim_(dim),
        selector_(selector),
        stored_(Positions::range(0, dataset.dim_size(dim))),
        selected_(selected),
        is_whole_(selected.is_range() && selected.size() == stored_.size()),
        is_sorted_(selected.is_range() || std::ranges::is_sorted(all_, {}, position_)),
        lookup_(dataset, dim, selector.where),
        positions_(lookup_, selected) {
    if (is_sorted_) return;
    for (const std::int64_t place : all_) by_position_.push_back(place);
    std::ranges::stable_sort(by_position_, {}, position_);
  }

  Positions run() const {
    const auto& parts = selector_.parts;
    if (parts.size() == 1 && !selector_.is_list) {
      const SelectorPart& part = parts.front();
      if (part.form == SelectorPart::Form::range || keeps_dim(part))
        return narrowed(range_of(part), selector_.fields, selected_);
      // Not one where `selected` lacks or repeats the label.
      const Positions found = narrowed(found_of(part), selector_.fields, selected_);
      return found.size() == 1 ? Positions::one(found[0]) : found;
    }
    if (parts.empty())
      return narrowed(Positions::range(0, selected_.size()), selector_.fields, selected_);
    // Where ranges meet, a position is in both: it is taken once. Labels may be repeated.
    bool any_range = false;
    for (const SelectorPart& part : parts)
      any_range = any_range || part.form == SelectorPart::Form::range;
    List all;
    std::set<std::int64_t> taken;
    const std::vector<IndexLookup::LabelPositions> labels = lookup_.labels(label_texts());
    auto next = labels.begin();
    for (const SelectorPart& part : parts) {
      for (const std::int64_t place :
           listed(is_label(part) ? places_of_label(part, *next++) : found_of(part)))
        if (!any_range || taken.insert(place).second) all.push_back(place);
      check_repeats(all);
    }
    return narrowed(Positions::list(std::move(all)), selector_.fields, selected_);
  }

 private:
  /// Labels may be repeated, a hundred thousand years of hours may not.
  void check_repeats(const List& all) const {
    constexpr std::size_t kPeriods = 8;  // each position as an hour, of a day, of a month, ...
    const std::size_t size = static_cast<std::size_t>(stored_.size());
    if (all.size() <= selector_.parts.size() + kPeriods * size) return;
    throw lookup_.error(
        ErrorCode::invalid_argument,
        fmt::format("the list repeats periods: it selects more than {} positions, and '{}' has {}; "
                    "name each period once",
                    selector_.parts.size() + kPeriods * size, dim_, size));
  }

  static bool is_label(const SelectorPart& part) {
    return part.form == SelectorPart::Form::one && !IndexLookup::is_position(part.value);
  }

  bool keeps_dim(const SelectorPart& part) const {
    return is_label(part) && lookup_.partial_date(part.value);
  }

  std::vector<std::string> label_texts() const {
    std::vector<std::string> texts;
    for (const SelectorPart& part : selector_.parts)
      if (is_label(part)) texts.push_back(part.value);
    return texts;
  }

  Positions places_of_label(const SelectorPart& part,
                            const IndexLookup::LabelPositions& found) const {
    if (found.positions.size() != 1 && !found.is_period)
      throw lookup_.error(
          ErrorCode::invalid_argument,
          fmt::format("the label '{}' occurs {} times", part.value, found.positions.size()));
    return places_of(found.positions, false);
  }

  Positions found_of(const SelectorPart& part) const {
    switch (part.form) {
      case SelectorPart::Form::one:
        return is_label(part) ? places_of_label(part, lookup_.labels({part.value}).front())
                              : Positions::list({positions_.position(part.value)});
      case SelectorPart::Form::nearest:
        return places_of(Positions::list({lookup_.nearest(part.value, part.tolerance)}), false);
      case SelectorPart::Form::range:
        return range_of(part);
    }
    return {};
  }

  /// A range, or a date that is one.
  Positions range_of(const SelectorPart& part) const {
    if (part.form != SelectorPart::Form::range) return found_of(part);
    if (PositionLookup::is_range(part))
      return narrowed(stepped(positions_.range(part), part.step), part.fields, selected_);
    const Positions found = lookup_.range(part);
    // Labels that exist elsewhere in the store only are not an error.
    if (part.step == 1) return places_of(narrowed(found, part.fields, stored_), part.wrap);
    return narrowed(stepped(places_of(found, part.wrap), part.step), part.fields, selected_);
  }

  static Positions stepped(const Positions& range, std::int64_t step) {
    if (step == 1) return range;
    List list;
    for (std::int64_t i = 0; i < range.size(); i += step) list.push_back(range[i]);
    return Positions::list(std::move(list));
  }

  /// Where stored positions are selected: in the order of the selection, of a range that goes round
  /// in that of the range.
  Positions places_of(const Positions& found, bool goes_round) const {
    if (is_whole_) return found;
    if (found.is_range() && selected_.is_range()) {
      const std::int64_t first = std::max<std::int64_t>(found[0] - selected_[0], 0);
      const std::int64_t end = std::min(found[0] - selected_[0] + found.size(), selected_.size());
      return Positions::range(first, std::max<std::int64_t>(end - first, 0));
    }
    List places;
    for (std::int64_t i = 0; i < found.size(); ++i) {
      const auto append_from = [&](const auto& sorted) {
        for (const std::int64_t place : std::ranges::equal_range(sorted, found[i], {}, position_))
          places.push_back(place);
      };
      if (is_sorted_)
        append_from(all_);
      else
        append_from(by_position_);
    }
    if (!goes_round) std::sort(places.begin(), places.end());
    return Positions::list(std::move(places));
  }

  /// Keeps the positions in `of` whose times pass. Throws when none of them does.
  Positions narrowed(const Positions& positions, const CalendarTest& fields,
                     const Positions& of) const {
    if (fields.empty()) return positions;
    const std::string where = selector_.where.empty() ? dim_ : selector_.where;
    const std::vector<bool> passing = passing_times(dataset_, dim_, fields, where);
    List left;
    for (const std::int64_t position : listed(positions))
      if (passing[static_cast<std::size_t>(of[position])]) left.push_back(position);
    if (left.empty() && positions.size() > 0)
      throw lookup_.error(
          ErrorCode::not_found,
          fmt::format("none of {} times of '{}', from {} to {}, has {}", positions.size(), dim_,
                      lookup_.shown(of[positions[0]]),
                      lookup_.shown(of[positions[positions.size() - 1]]), fields.text()));
    if (stored_.size() == 0)
      throw lookup_.error(ErrorCode::not_found, fmt::format("'{}' has no times", dim_));
    return Positions::list(std::move(left));
  }

  const Dataset& dataset_;
  const std::string dim_;
  const Selector& selector_;
  const Positions stored_, selected_;
  const std::function<std::int64_t(std::int64_t)> position_ = [this](std::int64_t place) {
    return selected_[place];
  };
  const std::ranges::iota_view<std::int64_t, std::int64_t> all_{0, selected_.size()};  // places
  const bool is_whole_, is_sorted_;
  List by_position_;  // places by their stored position, unless all_ is
  const IndexLookup lookup_;
  const PositionLookup positions_;
};

}  // namespace

Positions select(const Dataset& dataset, const std::string& dim, const Selector& selector) {
  return select_within(dataset, dim, selector, Positions::range(0, dataset.dim_size(dim)));
}

Positions select_within(const Dataset& dataset, const std::string& dim, const Selector& selector,
                        const Positions& selected) {
  return Selection(dataset, dim, selector, selected).run();
}

}  // namespace batchfs
