#include "engine/view/samples/start_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace batchfs {

namespace {

/// Reads ranges of bits, at any place.
class BitRanges {
 public:
  explicit BitRanges(std::span<const std::uint64_t> words) : words_(words) {}

  /// `count` bits, at most 64.
  std::uint64_t at(std::int64_t first, std::int64_t count) const {
    const auto word = static_cast<std::size_t>(first / 64);
    const auto shift = static_cast<unsigned>(first % 64);
    std::uint64_t bits = words_[word] >> shift;
    if (shift + static_cast<std::uint64_t>(count) > 64) bits |= words_[word + 1] << (64 - shift);
    return count == 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
  }
  bool any(std::int64_t first, std::int64_t count) const {
    return !all_words(first, count, [](std::uint64_t bits, std::int64_t) { return bits == 0; });
  }
  bool full(std::int64_t first, std::int64_t count) const {
    return all_words(first, count, [](std::uint64_t bits, std::int64_t here) {
      return bits == (here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1);
    });
  }
  bool equal(std::int64_t a, std::int64_t b, std::int64_t count) const {
    return all_words(a, count, [&](std::uint64_t bits, std::int64_t here) {
      const bool same = bits == at(b, here);
      b += here;
      return same;
    });
  }

 private:
  template <class Test>
  bool all_words(std::int64_t first, std::int64_t count, Test&& test) const {
    while (count > 0) {
      const std::int64_t here = std::min<std::int64_t>(count, 64);
      if (!test(at(first, here), here)) return false;
      first += here;
      count -= here;
    }
    return true;
  }

  std::span<const std::uint64_t> words_;
};

/// Elements of the dimensions behind one.
std::int64_t inner_of(const Dims& shape, std::size_t dim) {
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  return inner;
}

}  // namespace

StartTable::StartTable(const Dims& lengths) : axes_(lengths.size()) {
  for (std::size_t d = 0; d < lengths.size(); ++d) axes_[d].length = lengths[d];
}

StartTable StartTable::whole(const Dims& lengths) {
  StartTable table(lengths);
  for (Axis& axis : table.axes_) {
    axis.groups = 1;
    axis.starts = {{0, axis.length, 0}};
  }
  table.numbers_ = {0};
  return table;
}

StartTable StartTable::of_bits(const Dims& lengths, std::span<const std::uint64_t> words,
                               std::shared_ptr<const void> owner) {
  StartTable table(lengths);
  table.has_bits_ = true;
  table.bits_ = words;
  table.owner_ = std::move(owner);
  table.shape_ = lengths;
  for (std::size_t d = 0; d < lengths.size(); ++d) table.group_bits(d);
  return table;
}

StartTable StartTable::of_numbers(const Dims& lengths, std::vector<std::int64_t> numbers) {
  StartTable table(lengths);
  table.numbers_ = std::move(numbers);
  std::sort(table.numbers_.begin(), table.numbers_.end());
  table.numbers_.erase(std::unique(table.numbers_.begin(), table.numbers_.end()),
                       table.numbers_.end());
  for (std::size_t d = 0; d < lengths.size(); ++d) table.axes_[d].groups = lengths[d];
  for (std::size_t d = 0; d < lengths.size(); ++d) table.group_numbers(d);
  return table;
}

/// The starts of a dimension when its groups, or without any its starts, become those of `groups`:
/// (before, after), ascending; those that are missing are in no sample.
std::vector<StartTable::Starts> StartTable::renamed(
    std::size_t dim, const std::vector<std::pair<std::int64_t, std::int64_t>>& groups) {
  std::vector<Starts> result;
  const auto add = [&](std::int64_t first, std::int64_t end, std::int64_t group) {
    if (!result.empty() && result.back().end == first && result.back().group == group)
      result.back().end = end;
    else
      result.push_back({first, end, group});
  };
  if (axes_[dim].starts.empty()) {
    for (const auto& [start, group] : groups) add(start, start + 1, group);
    return result;
  }
  for (const Starts& each : axes_[dim].starts) {
    const auto found =
        std::lower_bound(groups.begin(), groups.end(), std::pair(each.group, INT64_C(0)));
    if (found != groups.end() && found->first == each.group)
      add(each.first, each.end, found->second);
  }
  return result;
}

/// Is there a sample at this place?
bool StartTable::has_bits_at(std::size_t dim, std::int64_t place) const {
  const std::int64_t inner = inner_of(shape_, dim), all = element_count(shape_);
  const BitRanges bits(bits_);
  for (std::int64_t at = place * inner; at < all; at += shape_[dim] * inner)
    if (bits.any(at, inner)) return true;
  return false;
}

/// Neighbours along a dimension with the same samples become one group.
void StartTable::group_bits(std::size_t dim) {
  const std::int64_t length = shape_[dim], inner = inner_of(shape_, dim), row = length * inner;
  const std::int64_t all = element_count(shape_);
  const BitRanges bits(bits_);
  std::vector<std::int64_t> places;  // that a sample has
  for (std::int64_t i = 0; i < length; ++i)
    if (has_bits_at(dim, i)) places.push_back(i);
  std::vector<bool> differs(places.size(), true);  // from the one before
  std::vector<std::size_t> open;                   // that differ nowhere so far
  for (std::size_t i = 1; i < places.size(); ++i) open.push_back(i);
  for (std::int64_t at = 0; at < all && !open.empty(); at += row) {
    if (!bits.any(at, row) || bits.full(at, row)) continue;
    std::erase_if(open, [&](std::size_t i) {
      return !bits.equal(at + places[i] * inner, at + places[i - 1] * inner, inner);
    });
  }
  for (const std::size_t i : open) differs[i] = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> groups;
  Axis& axis = axes_[dim];
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (differs[i]) axis.places.push_back(places[i]);
    groups.emplace_back(places[i], static_cast<std::int64_t>(axis.places.size()) - 1);
  }
  axis.starts = renamed(dim, groups);
  axis.groups = static_cast<std::int64_t>(axis.places.size());
}

/// The same for numbers, which become those of the groups.
void StartTable::group_numbers(std::size_t dim) {
  Dims shape;
  for (const Axis& axis : axes_) shape.push_back(axis.groups);
  const std::int64_t length = shape[dim], inner = inner_of(shape, dim);
  using Choice = std::pair<std::int64_t, std::int64_t>;  // place along it, and the others
  std::vector<Choice> choices;
  choices.reserve(numbers_.size());
  for (const std::int64_t number : numbers_)
    choices.emplace_back(number / inner % length, number / inner / length * inner + number % inner);
  if (dim > 0) std::sort(choices.begin(), choices.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> groups;
  numbers_.clear();
  std::vector<Choice> kept;  // the first of each group
  std::size_t before = 0, before_end = 0;
  for (std::size_t begin = 0, end = 0; begin < choices.size(); begin = end) {
    for (end = begin; end < choices.size() && choices[end].first == choices[begin].first;) ++end;
    const bool same =
        begin > 0 && end - begin == before_end - before &&
        std::equal(choices.begin() + static_cast<std::ptrdiff_t>(begin),
                   choices.begin() + static_cast<std::ptrdiff_t>(end),
                   choices.begin() + static_cast<std::ptrdiff_t>(before),
                   [](const Choice& a, const Choice& b) { return a.second == b.second; });
    const std::int64_t group = begin == 0 ? 0 : groups.back().second + (same ? 0 : 1);
    groups.emplace_back(choices[begin].first, group);
    if (!same)
      for (std::size_t i = begin; i < end; ++i) kept.emplace_back(group, choices[i].second);
    before = begin;
    before_end = end;
  }
  axes_[dim].starts = renamed(dim, groups);
  axes_[dim].groups = groups.empty() ? 0 : groups.back().second + 1;
  for (const auto& [group, others] : kept)
    numbers_.push_back((others / inner * axes_[dim].groups + group) * inner + others % inner);
  std::sort(numbers_.begin(), numbers_.end());
}

bool StartTable::is_product() const {
  if (!has_bits_) {
    auto left = static_cast<std::int64_t>(numbers_.size());
    for (const Axis& axis : axes_) {
      if (axis.groups == 0 || left % axis.groups != 0) return false;
      left /= axis.groups;
    }
    return left == 1;
  }
  const Dims strides = c_strides(shape_, 1);
  const BitRanges bits(bits_);
  const auto full = [&](auto&& self, std::size_t d, std::int64_t at) -> bool {
    if (d == axes_.size()) return bits.at(at, 1) != 0;
    return std::all_of(axes_[d].places.begin(), axes_[d].places.end(), [&](std::int64_t place) {
      return self(self, d + 1, at + place * strides[d]);
    });
  };
  return full(full, 0, 0);
}

std::uint64_t StartTable::bytes() const {
  std::uint64_t bytes = bits_.size_bytes() + numbers_.size() * sizeof(numbers_[0]);
  for (const Axis& axis : axes_)
    bytes += axis.starts.size() * sizeof(Starts) + axis.places.size() * sizeof(axis.places[0]);
  return bytes;
}

StartTable StartTable::along(const std::vector<std::size_t>& dims) const {
  std::vector<std::size_t> all(axes_.size());
  std::iota(all.begin(), all.end(), 0);
  if (dims == all) return *this;
  return has_bits_ ? bits_along(dims) : numbers_along(dims);
}

StartTable StartTable::bits_along(const std::vector<std::size_t>& dims) const {
  StartTable table(Dims{});
  Dims steps(axes_.size(), 0);  // in the result; 0: the dimension is not in it
  std::int64_t size = 1;
  for (std::size_t k = dims.size(); k-- > 0;) {
    steps[dims[k]] = size;
    size *= axes_[dims[k]].groups;
  }
  const auto words =
      std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>((size + 63) / 64));
  const Dims strides = c_strides(shape_, 1);
  const BitRanges bits(bits_);
  const auto enter = [&](auto&& self, std::size_t d, std::int64_t from, std::int64_t to) -> void {
    if (d == axes_.size()) {
      (*words)[static_cast<std::size_t>(to / 64)] |= bits.at(from, 1) << (to % 64);
      return;
    }
    for (std::int64_t g = 0; g < axes_[d].groups; ++g)
      self(self, d + 1, from + axes_[d].places[static_cast<std::size_t>(g)] * strides[d],
           to + g * steps[d]);
  };
  enter(enter, 0, 0, 0);
  table.has_bits_ = true;
  table.bits_ = *words;
  table.owner_ = words;
  for (const std::size_t d : dims) {
    table.axes_.push_back({axes_[d].length, axes_[d].groups, axes_[d].starts, {}});
    table.shape_.push_back(axes_[d].groups);
  }
  for (std::size_t k = 0; k < dims.size(); ++k) table.group_bits(k);
  return table;
}

StartTable StartTable::numbers_along(const std::vector<std::size_t>& dims) const {
  StartTable table(Dims{});
  Dims shape, own;
  for (const Axis& axis : axes_) shape.push_back(axis.groups);
  for (const std::size_t d : dims) {
    table.axes_.push_back({axes_[d].length, axes_[d].groups, axes_[d].starts, {}});
    own.push_back(axes_[d].groups);
  }
  const Dims strides = c_strides(shape, 1), own_strides = c_strides(own, 1);
  table.numbers_.reserve(numbers_.size());
  for (const std::int64_t number : numbers_) {
    std::int64_t here = 0;
    for (std::size_t k = 0; k < dims.size(); ++k)
      here += number / strides[dims[k]] % shape[dims[k]] * own_strides[k];
    table.numbers_.push_back(here);
  }
  std::sort(table.numbers_.begin(), table.numbers_.end());
  table.numbers_.erase(std::unique(table.numbers_.begin(), table.numbers_.end()),
                       table.numbers_.end());
  for (std::size_t k = 0; k < dims.size(); ++k) table.group_numbers(k);
  return table;
}

void StartTable::mark(const std::vector<std::vector<GroupRange>>& ranges,
                      std::uint8_t* marks) const {
  if (has_bits_) return mark_bits(ranges, 0, 0, marks);
  mark_numbers(ranges, 0, numbers_.begin(), numbers_.end(), 0, marks);
}

void StartTable::mark_bits(const std::vector<std::vector<GroupRange>>& ranges, std::size_t dim,
                           std::int64_t place, std::uint8_t*& marks) const {
  if (dim == axes_.size()) {
    *marks++ = static_cast<std::uint8_t>(BitRanges(bits_).at(place, 1));
    return;
  }
  for (const GroupRange& range : ranges[dim])
    for (std::int64_t g = range.first; g < range.end; ++g)
      mark_bits(ranges, dim + 1,
                place * shape_[dim] + axes_[dim].places[static_cast<std::size_t>(g)], marks);
}

void StartTable::mark_numbers(const std::vector<std::vector<GroupRange>>& ranges, std::size_t dim,
                              Number begin, Number end, std::int64_t base,
                              std::uint8_t* marks) const {
  if (dim == axes_.size()) {
    *marks = 1;
    return;
  }
  std::int64_t inner = 1, step = 1;
  for (std::size_t d = dim + 1; d < axes_.size(); ++d) {
    inner *= axes_[d].groups;
    std::int64_t count = 0;
    for (const GroupRange& range : ranges[d]) count += range.end - range.first;
    step *= count;
  }
  std::int64_t before = 0;  // groups of the ranges before
  for (const GroupRange& range : ranges[dim]) {
    Number at = std::lower_bound(begin, end, base + range.first * inner);
    const Number last = std::lower_bound(at, end, base + range.end * inner);
    while (at < last) {
      const std::int64_t group = (*at - base) / inner;
      const Number next = std::lower_bound(at, last, base + (group + 1) * inner);
      mark_numbers(ranges, dim + 1, at, next, base + group * inner,
                   marks + (before + group - range.first) * step);
      at = next;
    }
    before += range.end - range.first;
  }
}

}  // namespace batchfs
