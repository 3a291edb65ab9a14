#include "engine/dataset/selection.h"

#include <set>

#include <fmt/format.h>

#include "engine/dataset/index_lookup.h"

namespace batchfs {

namespace {

using List = IndexLookup::List;

List listed(const Positions& positions) {
  List list;
  for (std::int64_t i = 0; i < positions.size(); ++i) list.push_back(positions[i]);
  return list;
}

class Selection {
 public:
  Selection(const Dataset& dataset, const std::string& dim, const Selector& selector)
      : dataset_(dataset), dim_(dim), selector_(selector), lookup_(dataset, dim, selector.where) {}

  Positions run() const {
    const auto& parts = selector_.parts;
    if (parts.size() == 1 && !selector_.is_list) {
      const SelectorPart& part = parts.front();
      if (part.form != SelectorPart::Form::range && !keeps_dim(part)) {
        const List one = narrowed(positions_of(part), selector_.fields);
        return Positions::one(one.front());
      }
      const Positions found = range_of(part);
      return selector_.fields.empty() ? found
                                      : Positions::list(narrowed(listed(found), selector_.fields));
    }
    if (parts.empty())
      return Positions::list(
          narrowed(listed(Positions::range(0, lookup_.size())), selector_.fields));
    // Where ranges meet, a position is in both: it is taken once. Labels may be repeated.
    bool any_range = false;
    for (const SelectorPart& part : parts)
      any_range = any_range || part.form == SelectorPart::Form::range;
    List all;
    std::set<std::int64_t> taken;
    for (const SelectorPart& part : parts)
      for (const std::int64_t position : positions_of(part))
        if (!any_range || taken.insert(position).second) all.push_back(position);
    return Positions::list(narrowed(std::move(all), selector_.fields));
  }

 private:
  bool keeps_dim(const SelectorPart& part) const {
    return part.form == SelectorPart::Form::one && !IndexLookup::is_position(part.value) &&
           lookup_.partial_date(part.value);
  }

  List positions_of(const SelectorPart& part) const {
    switch (part.form) {
      case SelectorPart::Form::one: {
        if (IndexLookup::is_position(part.value)) return {lookup_.position(part.value)};
        List found = lookup_.label(part.value);
        if (found.size() != 1 && !lookup_.partial_date(part.value))
          throw lookup_.error(
              ErrorCode::invalid_argument,
              fmt::format("the label '{}' occurs {} times", part.value, found.size()));
        return found;
      }
      case SelectorPart::Form::nearest:
        return {lookup_.nearest(part.value, part.tolerance)};
      case SelectorPart::Form::range:
        return listed(range_of(part));
    }
    return {};
  }

  /// A range, or a date that is one.
  Positions range_of(const SelectorPart& part) const {
    if (part.form != SelectorPart::Form::range) return Positions::list(positions_of(part));
    Positions found = lookup_.range(part);
    if (part.step > 1) {
      List list;
      for (std::int64_t i = 0; i < found.size(); i += part.step) list.push_back(found[i]);
      found = Positions::list(std::move(list));
    }
    return part.fields.empty() ? found : Positions::list(narrowed(listed(found), part.fields));
  }

  /// Keeps the positions whose times pass. Throws when none does.
  List narrowed(List positions, const CalendarTest& fields) const {
    if (fields.empty()) return positions;
    const std::string where = selector_.where.empty() ? dim_ : selector_.where;
    const std::vector<bool> passing = passing_times(dataset_, dim_, fields, where);
    List left;
    for (const std::int64_t position : positions)
      if (passing[static_cast<std::size_t>(position)]) left.push_back(position);
    if (left.empty() && !positions.empty())
      throw lookup_.error(ErrorCode::not_found,
                          fmt::format("none of {} times of '{}', from {} to {}, has {}",
                                      positions.size(), dim_, lookup_.shown(positions.front()),
                                      lookup_.shown(positions.back()), fields.text()));
    if (left.empty())
      throw lookup_.error(ErrorCode::not_found, fmt::format("'{}' has no times", dim_));
    return left;
  }

  const Dataset& dataset_;
  const std::string dim_;
  const Selector& selector_;
  const IndexLookup lookup_;
};

}  // namespace

Positions select(const Dataset& dataset, const std::string& dim, const Selector& selector) {
  return Selection(dataset, dim, selector).run();
}

}  // namespace batchfs
