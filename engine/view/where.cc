#include "engine/view/where.h"

#include <algorithm>

#include "engine/dataset/selection.h"

namespace batchfs {

namespace {

std::int64_t value_of(CalendarField field, const TimeAxis::Date& date) {
  switch (field) {
    case CalendarField::year:
      return date.year;
    case CalendarField::month:
      return date.month;
    case CalendarField::day:
      return date.day;
    case CalendarField::hour:
      return date.hour;
    case CalendarField::minute:
      return date.minute;
    case CalendarField::dayofyear:
      return date.day_of_year;
    case CalendarField::weekday:
      return date.weekday;
    case CalendarField::season:
      break;
  }
  return 0;
}

}  // namespace

std::vector<bool> rejected_positions(const SampleSpec::Where& where, const Dataset& dataset,
                                     const Positions& selected, const TimeAxis* times) {
  const auto size = static_cast<std::size_t>(selected.size());
  std::vector<bool> rejected(size);
  if (where.selector) {
    std::vector<bool> chosen(static_cast<std::size_t>(dataset.dim_size(where.dim)));
    const Positions found = select(dataset, where.dim, *where.selector);
    for (std::int64_t i = 0; i < found.size(); ++i)
      chosen[static_cast<std::size_t>(found[i])] = true;
    for (std::size_t p = 0; p < size; ++p)
      rejected[p] = !chosen[static_cast<std::size_t>(selected[static_cast<std::int64_t>(p)])];
  }
  if (where.fields.empty()) return rejected;
  for (std::size_t p = 0; p < size; ++p) {
    if (rejected[p]) continue;
    if (times->is_missing(static_cast<std::int64_t>(p))) {
      rejected[p] = true;
      continue;
    }
    const TimeAxis::Date date = times->date(static_cast<std::int64_t>(p));
    rejected[p] = !std::all_of(where.fields.begin(), where.fields.end(),
                               [&](const SampleSpec::Where::Field& field) {
                                 return std::binary_search(field.values.begin(), field.values.end(),
                                                           value_of(field.field, date));
                               });
  }
  return rejected;
}

}  // namespace batchfs
