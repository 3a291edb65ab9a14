#include "engine/view/split/split_axis.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/rounding.h"
#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "engine/dataset/selection.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

using Run = std::pair<std::int64_t, std::int64_t>;  // of positions: first, end

std::size_t window_of_split(const RestrictedView& view, const std::string& dim,
                            const std::string& path) {
  const int number = window_number(view.windows, dim);
  if (number >= 0) return static_cast<std::size_t>(number);
  std::vector<std::string> names;
  for (const WindowDim& window : view.windows) names.push_back(window.name);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' is not a dimension of \"window\"{}", path, dim,
                          nearest_or_all(dim, names)));
}

/// The positions of the selection that a region holds along a dimension.
std::vector<Run> runs_of(const RestrictedView& view, const std::string& dim,
                         const Selector& selector, const std::string& path) {
  const Positions& selected = view.selected.at(dim);
  const Positions found = select_within(view.dataset, dim, selector, selected);
  std::vector<Run> runs;
  if (found.is_range()) {
    if (found.size() > 0) runs.emplace_back(found[0], found[0] + found.size());
  } else {
    std::vector<bool> is_found(static_cast<std::size_t>(selected.size()));
    for (std::int64_t i = 0; i < found.size(); ++i)
      is_found[static_cast<std::size_t>(found[i])] = true;
    for (std::int64_t p = 0; p < selected.size(); ++p) {
      if (!is_found[static_cast<std::size_t>(p)]) continue;
      if (runs.empty() || runs.back().second != p) runs.emplace_back(p, p);
      ++runs.back().second;
    }
  }
  if (runs.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}.{}: \"select\" has none of these labels: it has {} to {}", path, dim,
                    position_text(view, dim, 0), position_text(view, dim, selected.size() - 1)));
  return runs;
}

SplitAxis axis_of_regions(const RestrictedView& view, const SplitSpec& split, std::size_t w) {
  const std::string& dim = view.windows[w].name;
  const std::int64_t length = view.selected.at(dim).size();
  std::vector<std::optional<std::vector<Run>>> runs;  // of each region; nullopt: all positions
  std::vector<std::int64_t> begins{0, length};
  for (const SplitSpec::Part& part : split.parts)
    for (const SplitSpec::Region& region : part.regions) {
      runs.emplace_back();
      for (const auto& [name, selector] : region.box) {
        if (name != dim) continue;
        check_restricted_length(view.dataset, dim, region.path + "." + dim);
        runs.back() = runs_of(view, dim, selector, region.path);
        for (const auto& [first, end] : *runs.back()) {
          begins.push_back(first);
          begins.push_back(end);
        }
      }
    }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  SplitAxis axis{.dim = dim, .window = w, .begins = std::move(begins)};
  axis.words = (runs.size() + 63) / 64;
  axis.regions.resize(static_cast<std::size_t>(axis.cells()) * axis.words);
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (const auto& [first, end] : runs[r].value_or(std::vector<Run>{{0, length}}))
      for (auto cell = static_cast<std::size_t>(axis.cell_of(first));
           static_cast<std::int64_t>(cell) < axis.cells() && axis.begins[cell] < end; ++cell)
        axis.regions[cell * axis.words + r / 64] |= std::uint64_t{1} << (r % 64);
  return axis;
}

/// Classes from a key for each position, numbered in the order of their first position.
template <class Key>
class Classes {
 public:
  Classes(SplitAxis& axis, bool texts) : axis_(axis), texts_(texts) { axis_.begins.clear(); }

  /// Is it the first position of its class?
  template <class Text>
  bool add(std::int64_t position, const Key& key, Text&& text) {
    if (!axis_.begins.empty() && key == last_) return false;
    const auto [found, is_new] = numbers_.try_emplace(key, axis_.class_count);
    if (is_new) {
      ++axis_.class_count;
      if (texts_) axis_.texts.push_back(text());
    }
    axis_.begins.push_back(position);
    axis_.classes.push_back(found->second);
    last_ = key;
    return is_new;
  }

 private:
  SplitAxis& axis_;
  const bool texts_;
  std::map<Key, std::int32_t> numbers_;
  Key last_{};
};

std::int64_t month_of(__int128 time, Calendar calendar) {
  const Moment moment = moment_of(time).value_or(Moment{});
  return (calendar_field(CalendarField::year, calendar, moment) - 1970) * 12 +
         calendar_field(CalendarField::month, calendar, moment) - 1;
}

/// The label of a position of the selection; without labels the stored position, which stays when
/// the selection grows.
std::string text_at(const RestrictedView& view, const std::string& dim, std::int64_t position) {
  const std::int64_t stored = view.selected.at(dim)[position];
  return view.dataset.index_of(dim) != nullptr ? label_text(view.dataset.index(dim), stored)
                                               : fmt::format("#{}", stored);
}

SplitAxis axis_of_blocks(const RestrictedView& view, const SplitSpec& split,
                         const SplitSpec::Length& block) {
  const std::string& dim = block.dim;
  SplitAxis axis{.dim = dim, .window = window_of_split(view, dim, block.path)};
  check_restricted_length(view.dataset, dim, block.path);
  const std::int64_t length = view.selected.at(dim).size();
  if (block.duration) {
    const std::vector<__int128> times = times_along(view, dim, block.path);
    const Calendar calendar = TimeAxis::of(view.dataset.index(dim))->calendar();
    Classes<std::int64_t> classes(axis, split.by_hash);
    for (std::int64_t p = 0; p < length; ++p) {
      const __int128 time = times[static_cast<std::size_t>(p)];
      const std::int64_t number =
          block.duration->months != 0
              ? floor_divide(month_of(time, calendar), block.duration->months)
              : static_cast<std::int64_t>(
                    floor_divide<__int128>(time, block.duration->nanoseconds));
      classes.add(p, number, [&] { return std::to_string(number); });
    }
  } else {
    for (std::int64_t first = 0; first < length; first += block.positions) {
      axis.begins.push_back(first);
      axis.classes.push_back(axis.class_count++);
      if (split.by_hash) axis.texts.push_back(text_at(view, dim, first));
    }
  }
  axis.begins.push_back(length);
  return axis;
}

std::string field_text(CalendarField field, std::int64_t value) {
  constexpr const char* kSeasons[] = {"DJF", "MAM", "JJA", "SON"};
  return field == CalendarField::season ? kSeasons[value] : std::to_string(value);
}

/// The values of a variable along its dimension, which are read in pieces where they can be.
class GroupValues {
 public:
  GroupValues(const RestrictedView& view, const Variable& variable, const std::string& path,
              bool whole)
      : variable_(variable), size_(view.dataset.dim_size(variable.dims.front())) {
    const std::string& dim = variable.dims.front();
    if (view.dataset.index_of(dim) == &variable) {
      values_ = &view.dataset.index(dim);
      end_ = size_;
    } else if (!whole && is_read_in_parts(variable) && view.selected.at(dim).is_range()) {
      const std::int64_t chunk = variable.metadata->chunk_shape[0];
      piece_ = std::max<std::int64_t>(kPiece / chunk, 1) * chunk;
      own_.cf = variable.cf;
    } else {
      const std::uint64_t bytes = value_bytes(variable), limit = view.dataset.memory_limit();
      if (bytes > max_lists(limit))
        throw Error(ErrorCode::no_memory,
                    fmt::format("{}: '{}' takes {} of memory, and groups get {} of {}; give more "
                                "with --memory",
                                path, variable.name, format_size(bytes),
                                format_size(max_lists(limit)), format_size(limit)));
      own_ = read_index(variable);
      end_ = size_;
    }
  }

  /// The values that were read last; all of them if `whole`.
  const Dataset::Index& current() const { return *values_; }
  /// The values that hold a position, and its place among them. Valid until the next call.
  std::pair<const Dataset::Index&, std::int64_t> at(std::int64_t position) {
    if (position < first_ || position >= end_) {
      own_.values = NdArray();  // before the next piece takes memory
      first_ = position / piece_ * piece_;
      end_ = std::min(first_ + piece_, size_);
      own_.values = read_part(variable_, first_, end_ - first_);
    }
    return {*values_, position - first_};
  }

 private:
  static constexpr std::int64_t kPiece = 1 << 16;  // positions; whole chunks
  const Variable& variable_;
  const std::int64_t size_;
  Dataset::Index own_;
  const Dataset::Index* values_ = &own_;
  std::int64_t piece_ = 1, first_ = 0, end_ = 0;
};

/// Throws no_memory where the texts of groups leave too little of it for batches.
void check_group_texts(const std::string& path, std::int32_t groups, std::uint64_t bytes,
                       std::uint64_t limit) {
  if (bytes <= max_lists(limit)) return;
  throw Error(ErrorCode::no_memory,
              fmt::format("{}: more than {} groups, which take {} of memory, and groups get {} of "
                          "{}; give more with --memory",
                          path, groups - 1, format_size(bytes), format_size(max_lists(limit)),
                          format_size(limit)));
}

SplitAxis axis_of_group(const RestrictedView& view, const SplitSpec::Group& group, bool by_hash) {
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", group.path, why));
  };
  const Variable* variable = view.dataset.find(group.variable);
  if (variable == nullptr) {
    std::vector<std::string> names;
    for (const Variable& each : view.dataset.variables()) names.push_back(each.name);
    throw fail(fmt::format("no coordinate or variable '{}'{}", group.variable,
                           did_you_mean(group.variable, names)));
  }
  if (variable->dims.size() != 1)
    throw fail(
        fmt::format("'{}' has {} dimensions; groups need one along a dimension of \"window\"",
                    group.variable, variable->dims.size()));
  if (!variable->is_readable())
    throw fail(fmt::format("'{}' cannot be read: {}", group.variable, variable->unsupported));
  const std::string& dim = variable->dims.front();
  if (variable->join_along(0) != nullptr)
    throw fail(
        fmt::format("'{}' is joined from another source; groups are made of the first "
                    "source's coordinates and variables",
                    group.variable));
  SplitAxis axis{.dim = dim, .window = window_of_split(view, dim, group.path)};
  check_restricted_length(view.dataset, dim, group.path);
  const Positions& selected = view.selected.at(dim);
  GroupValues values(view, *variable, group.path, group.field.has_value());
  if (group.field) {
    const auto times = TimeAxis::of(values.current());
    if (!times) throw fail(fmt::format("'{}' holds no dates", group.variable));
    Classes<std::int64_t> classes(axis, by_hash);
    for (std::int64_t p = 0; p < selected.size(); ++p) {
      const auto time = times->nanoseconds(selected[p]);
      const auto moment = time ? moment_of(*time) : std::nullopt;
      if (!moment)
        throw fail(fmt::format("'{}' has no date at position {}", group.variable, selected[p]));
      const std::int64_t value = calendar_field(*group.field, times->calendar(), *moment);
      classes.add(p, value, [&] { return field_text(*group.field, value); });
    }
  } else {
    // By text: NaN equals NaN, and -0 equals 0 where both are written so.
    constexpr std::size_t kKnown = 1 << 20, kNode = 160;  // bytes
    Classes<std::string> classes(axis, by_hash);
    std::unordered_map<std::string, std::string> texts;  // of the bytes of values; not of all
    std::uint64_t bytes = 0, known = 0;
    for (std::int64_t p = 0; p < selected.size(); ++p) {
      const auto [index, at] = values.at(selected[p]);
      const std::size_t itemsize = index.values.type.itemsize;
      const auto* value = reinterpret_cast<const char*>(index.values.data.data()) +
                          static_cast<std::size_t>(at) * itemsize;
      if (known > kKnown) texts.clear(), known = 0;
      const auto [found, is_new] = texts.try_emplace(std::string(value, itemsize));
      if (is_new) {
        // Lengths of time by their counts, which decide on the part.
        found->second = index.values.type.kind == Kind::timedelta ? label_text(index.values, at)
                                                                  : label_text(index, at);
        known += kNode + itemsize + found->second.size();
      }
      const std::string& text = found->second;
      if (!classes.add(p, text, [&] { return text; })) continue;
      bytes += kNode + (by_hash ? 2 : 1) * text.size();
      check_group_texts(group.path, axis.class_count, bytes, view.dataset.memory_limit());
    }
  }
  axis.begins.push_back(selected.size());
  return axis;
}

}  // namespace

std::int64_t SplitAxis::cell_of(std::int64_t position) const {
  return std::upper_bound(begins.begin(), begins.end() - 1, position) - begins.begin() - 1;
}

std::string position_text(const RestrictedView& view, const std::string& dim,
                          std::int64_t position) {
  return view.dataset.index_of(dim) != nullptr ? text_at(view, dim, position)
                                               : fmt::format("#{}", position);
}

std::vector<__int128> times_along(const RestrictedView& view, const std::string& dim,
                                  const std::string& path) {
  const auto axis =
      view.dataset.index_of(dim) != nullptr ? TimeAxis::of(view.dataset.index(dim)) : std::nullopt;
  if (!axis)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: '{}' has no coordinate of times; write a number of positions", path, dim));
  const Positions& selected = view.selected.at(dim);
  std::vector<__int128> times;
  times.reserve(static_cast<std::size_t>(selected.size()));
  for (std::int64_t p = 0; p < selected.size(); ++p) {
    const auto time = axis->nanoseconds(selected[p]);
    if (!time || !moment_of(*time))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' has no time at position {}", path, dim, selected[p]));
    times.push_back(*time);
  }
  return times;
}

std::vector<SplitAxis> split_axes(const RestrictedView& view, const SplitSpec& split) {
  std::vector<SplitAxis> axes;
  const auto add = [&](SplitAxis axis, const std::string& path) {
    for (const SplitAxis& other : axes)
      if (other.window == axis.window)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{}: '{}' is cut twice", path, axis.dim));
    axes.push_back(std::move(axis));
  };
  if (split.is_drawn()) {
    for (const SplitSpec::Length& block : split.blocks)
      add(axis_of_blocks(view, split, block), block.path);
    for (const SplitSpec::Group& group : split.groups)
      add(axis_of_group(view, group, split.by_hash), group.path);
  } else {
    std::set<std::size_t> named;
    for (const SplitSpec::Part& part : split.parts)
      for (const SplitSpec::Region& region : part.regions)
        for (const auto& [dim, selector] : region.box)
          named.insert(window_of_split(view, dim, region.path + "." + dim));
    for (const std::size_t w : named) add(axis_of_regions(view, split, w), split.path);
  }
  for (const SplitSpec::Length& gap : split.gap) window_of_split(view, gap.dim, gap.path);
  std::sort(axes.begin(), axes.end(),
            [](const SplitAxis& a, const SplitAxis& b) { return a.window < b.window; });
  return axes;
}

}  // namespace batchfs
