#include "engine/view/samples/mask.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/window_values.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxMaskedWindows = INT64_C(1) << 33;  // 1 GiB of bits

/// Numbers over the positions, and then over the starts, of the mask's dimensions.
struct Cells {
  Dims shape;
  std::vector<std::uint32_t> counts;  // C order
};

constexpr std::int64_t kMaxCells = INT64_C(1) << 27;

/// Is a value that the mask reads marked?
bool is_marked(const MaskSpec& mask, LabelNumber value) {
  if (std::isnan(value)) return false;
  if (!mask.above && !mask.below) return value != 0;
  return (!mask.above || value > *mask.above) && (!mask.below || value < *mask.below);
}

/// Marked cells: 1, else 0.
Cells read_cells(const MaskSpec& mask, const WindowMarks& marks) {
  Cells cells;
  std::int64_t size = 1;
  for (const WindowMarks::Axis& axis : marks.axes) {
    cells.shape.push_back(axis.selected.size());
    if (__builtin_mul_overflow(size, axis.selected.size(), &size) || size > kMaxCells)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: the selection has more than 134,217,728 cells", mask.path));
  }
  cells.counts.reserve(static_cast<std::size_t>(size));
  auto look = [&](auto&& self, std::size_t d, std::int64_t place) -> void {
    if (d == marks.axes.size()) {
      cells.counts.push_back(marks.marked[static_cast<std::size_t>(place)] ? 1 : 0);
      return;
    }
    for (std::int64_t p = 0; p < cells.shape[d]; ++p) self(self, d + 1, place + marks.offset(d, p));
  };
  look(look, 0, 0);
  return cells;
}

/// Positions [begin, end) along a dimension.
using MaskStretch = std::pair<std::int64_t, std::int64_t>;

/// How many positions of a stretch there are: those outside are none, but on a circle.
std::int64_t length_of(MaskStretch stretch, std::int64_t size, bool circle) {
  if (circle) return stretch.second - stretch.first;
  return std::max<std::int64_t>(
      0, std::min(stretch.second, size) - std::max<std::int64_t>(stretch.first, 0));
}

/// Along one dimension: what the mask is tested over for each start, the footprint or the middle.
struct MaskAxis {
  const MaskSpec& mask;
  const WindowGrid& grid;
  const WindowDim& window;
  const Reach& reach;
  std::size_t w;      // number of the window dimension
  std::int64_t size;  // positions

  std::int64_t starts() const { return grid.counts[w]; }
  MaskStretch stretch(std::int64_t i) const {
    const std::int64_t start = grid.start(w, i), middle = start + window.size / 2;
    return mask.center ? MaskStretch(middle, middle + 1) : reach.footprint(start);
  }
  std::int64_t length(std::int64_t i) const { return length_of(stretch(i), size, window.wrap); }
};

/// Replaces the positions of dimension `d` by starts: the sums over their stretches.
void add_up(Cells& cells, std::size_t d, const MaskAxis& axis) {
  const std::int64_t size = cells.shape[d], starts = axis.starts();
  std::size_t outer = 1, inner = 1;
  for (std::size_t k = 0; k < d; ++k) outer *= static_cast<std::size_t>(cells.shape[k]);
  for (std::size_t k = d + 1; k < cells.shape.size(); ++k)
    inner *= static_cast<std::size_t>(cells.shape[k]);
  const std::size_t row = static_cast<std::size_t>(size) * inner;
  std::vector<std::uint32_t> result(outer * static_cast<std::size_t>(starts) * inner);
  std::uint32_t* to = result.data();
  for (std::size_t o = 0; o < outer; ++o) {
    // Sums up to each position, it included.
    std::uint32_t* const sums = cells.counts.data() + o * row;
    for (std::size_t i = inner; i < row; ++i) sums[i] += sums[i - inner];
    const auto before = [&](std::int64_t position, std::size_t i) -> std::int64_t {
      std::int64_t turns = 0;
      if (axis.window.wrap) {
        turns = position / size - (position % size < 0 ? 1 : 0);
        position -= turns * size;
      } else {
        position = std::clamp<std::int64_t>(position, 0, size);
      }
      const std::int64_t here =
          position == 0 ? 0 : sums[static_cast<std::size_t>(position - 1) * inner + i];
      return turns == 0 ? here : turns * std::int64_t{sums[row - inner + i]} + here;
    };
    for (std::int64_t s = 0; s < starts; ++s) {
      const MaskStretch stretch = axis.stretch(s);
      for (std::size_t i = 0; i < inner; ++i)
        *to++ = static_cast<std::uint32_t>(before(stretch.second, i) - before(stretch.first, i));
    }
  }
  cells.shape[d] = starts;
  cells.counts = std::move(result);
}

/// A share in messages.
std::string share_text(const MaskSpec& mask) {
  if (mask.center) return "the cell in the middle is not marked";
  return fmt::format("the share of marked cells is not {}",
                     mask.least == mask.most
                         ? fmt::format("{}", mask.least)
                         : fmt::format("between {} and {}", mask.least, mask.most));
}

/// The windows of a grid whose starts passed.
std::shared_ptr<const SampleIndex> masked_windows(const MaskedStarts& mask,
                                                  const WindowGrid& grid) {
  const std::int64_t windows = count_windows(grid);
  if (windows > kMaxMaskedWindows)
    throw Error(ErrorCode::not_supported,
                "samples.mask: more than 2^33 windows; take a larger stride");
  std::vector<std::uint64_t> words((static_cast<std::size_t>(windows) + 63) / 64);
  const std::size_t dims = grid.counts.size();
  Dims strides(dims, 0);  // in mask.passed
  std::int64_t stride = 1;
  for (std::size_t k = mask.windows.size(); k-- > 0;) {
    strides[mask.windows[k]] = stride;
    stride *= grid.counts[mask.windows[k]];
  }
  std::int64_t number = 0;
  auto enter = [&](auto&& self, std::size_t w, std::int64_t place) -> void {
    if (w == dims) {
      if (mask.passed[static_cast<std::size_t>(place)])
        words[static_cast<std::size_t>(number / 64)] |= std::uint64_t{1} << (number % 64);
      ++number;
      return;
    }
    for (std::int64_t i = 0; i < grid.counts[w]; ++i) self(self, w + 1, place + i * strides[w]);
  };
  enter(enter, 0, 0);
  return std::make_shared<const SampleIndex>(std::move(words), windows);
}

/// Leaves out starts along the one dimension of a mask.
void keep_passed(const Dataset& dataset, const std::string& path, const MaskedStarts& mask,
                 WindowGrid& grid) {
  const std::size_t w = mask.windows.front();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < grid.counts[w]; ++i)
    count += mask.passed[static_cast<std::size_t>(i)] ? 1 : 0;
  if (count == grid.counts[w]) return;
  GrowingStarts left(dataset, path);
  left.reserve(count);
  for (std::int64_t i = 0; i < grid.counts[w]; ++i)
    if (mask.passed[static_cast<std::size_t>(i)]) left.push_back(grid.number(w, i));
  grid.allowed.resize(grid.counts.size());
  grid.counts[w] = count;
  grid.allowed[w] = left.take();
}

LabelNumber threshold(const JsonRef& json) {
  static_cast<void>(json.number());  // throws for another type
  return label_number(json.value());
}

}  // namespace

MaskSpec parse_mask(const JsonRef& json) {
  if (!json.is_object())
    throw json.error(
        fmt::format("expected an object; write {{\"variable\": {}}}", json.value().dump()));
  json.allow_only({"variable", "above", "below", "fraction", "at"});
  MaskSpec mask;
  mask.path = json.path();
  mask.variable = json.at("variable").string();
  if (const auto above = json.find("above")) mask.above = threshold(*above);
  if (const auto below = json.find("below")) {
    mask.below = threshold(*below);
    if (mask.above && *mask.above >= *mask.below)
      throw below->error(fmt::format("{} is not more than \"above\", {}: no value is between them",
                                     below->value().dump(), json.at("above").value().dump()));
  }
  const auto fraction = json.find("fraction");
  if (fraction) {
    const std::vector<JsonRef> ends =
        fraction->is_array() ? fraction->elements() : std::vector<JsonRef>{};
    if (ends.size() != 2)
      throw fraction->error("expected a list of two shares, as [0.1, 1]: the least and the most");
    mask.least = ends[0].number();
    mask.most = ends[1].number();
    for (const JsonRef& end : ends)
      if (!(end.number() >= 0 && end.number() <= 1))
        throw end.error(
            fmt::format("{} is not a share: it is between 0 and 1", end.value().dump()));
    if (mask.least > mask.most)
      throw fraction->error(
          fmt::format("the least share, {}, is more than the most, {}", mask.least, mask.most));
  }
  if (const auto at = json.find("at")) {
    if (at->string() != "center")
      throw at->error(fmt::format("'{}' is not center{}", at->string(),
                                  did_you_mean(at->string(), {"center"})));
    if (fraction) throw at->error("one cell has no \"fraction\"; leave one of them out");
    mask.center = true;
  }
  return mask;
}

namespace {

/// Throws where the bits of the values, counts of cells and those of starts, of which two are in
/// memory at a time, and the bits of the result take too much memory.
void check_mask_memory(const MaskSpec& mask, const Dataset& dataset, const WindowMarks& marks,
                       const std::vector<MaskAxis>& axes) {
  std::uint64_t cells = 1;
  for (const MaskAxis& axis : axes) {
    cells *= static_cast<std::uint64_t>(axis.size);
    if (cells > static_cast<std::uint64_t>(kMaxCells)) return;  // read_cells() refuses it
  }
  std::uint64_t most = 0;
  for (const MaskAxis& axis : axes) {
    std::uint64_t sums = 0;
    if (axis.size > 0 && __builtin_mul_overflow(cells / static_cast<std::uint64_t>(axis.size),
                                                static_cast<std::uint64_t>(axis.starts()), &sums))
      sums = UINT64_MAX / 16;
    most = std::max(most, cells + sums);
    cells = sums;
  }
  check_list(dataset, most * sizeof(std::uint32_t) + (marks.marked.size() + cells) / 8, mask.path,
             "the cells and windows");
}

}  // namespace

MaskedStarts masked_starts(const MaskSpec& mask, const RestrictedView& view,
                           const WindowGrid& grid) {
  WindowMarks marks = read_window_marks(
      view.dataset, mask.variable, mask.path + ".variable", view.windows, view.selected,
      [&mask](LabelNumber value) { return is_marked(mask, value); });
  std::vector<MaskAxis> axes;
  for (const WindowMarks::Axis& axis : marks.axes)
    axes.push_back({mask, grid, view.windows[axis.window], view.reaches[axis.window], axis.window,
                    axis.selected.size()});
  check_mask_memory(mask, view.dataset, marks, axes);
  Cells cells = read_cells(mask, marks);
  marks.marked = {};
  const std::int64_t size = static_cast<std::int64_t>(cells.counts.size());
  const std::int64_t marked = std::count(cells.counts.begin(), cells.counts.end(), 1U);
  double most = 1;
  std::int64_t starts = 1;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < axes[d].starts(); ++i)
      longest = std::max(longest, axes[d].length(i));
    most *= static_cast<double>(longest);
    if (most > static_cast<double>(UINT32_MAX))
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: a footprint has more than 4294967295 cells", mask.path));
    if (__builtin_mul_overflow(starts, axes[d].starts(), &starts) || starts > kMaxMaskedWindows)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: the mask is asked about more than 2^33 windows; take a larger "
                              "stride",
                              mask.path));
    add_up(cells, d, axes[d]);
  }
  // By the order of the window's dimensions, whatever that of the variable's is.
  std::vector<std::size_t> order(axes.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return axes[a].w < axes[b].w; });
  const Dims strides = c_strides(cells.shape, 1);
  MaskedStarts result;
  for (const std::size_t d : order) result.windows.push_back(axes[d].w);
  result.passed.reserve(static_cast<std::size_t>(starts));
  std::int64_t passed = 0;
  auto test = [&](auto&& self, std::size_t k, std::int64_t place, std::int64_t length) -> void {
    if (k == order.size()) {
      const double share = static_cast<double>(cells.counts[static_cast<std::size_t>(place)]) /
                           static_cast<double>(std::max<std::int64_t>(length, 1));
      result.passed.push_back(share >= mask.least && share <= mask.most);
      passed += result.passed.back() ? 1 : 0;
      return;
    }
    const std::size_t d = order[k];
    for (std::int64_t i = 0; i < cells.shape[d]; ++i)
      self(self, k + 1, place + i * strides[d], length * axes[d].length(i));
  };
  test(test, 0, 0, 1);
  if (passed == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: no sample is left: of {} {}; '{}' marks {} of {}", mask.path,
                            counted(count_windows(grid), "window"), share_text(mask), mask.variable,
                            marked, counted(size, "cell")));
  return result;
}

std::shared_ptr<const SampleIndex> restrict_by_mask(const MaskSpec& mask,
                                                    const RestrictedView& view, WindowGrid& grid,
                                                    Dropped& dropped) {
  const MaskedStarts starts = masked_starts(mask, view, grid);
  const std::int64_t before = count_windows(grid);
  if (starts.windows.size() == 1) {
    keep_passed(view.dataset, mask.path, starts, grid);
    dropped.emplace_back("mask", before - count_windows(grid));
    return nullptr;
  }
  auto index = masked_windows(starts, grid);
  dropped.emplace_back("mask", before - index->samples());
  return index;
}

std::shared_ptr<const SampleIndex> in_both(const std::shared_ptr<const SampleIndex>& a,
                                           const std::shared_ptr<const SampleIndex>& b) {
  if (a == nullptr || b == nullptr || a == b) return a == nullptr ? b : a;
  std::vector<std::uint64_t> words(a->words().begin(), a->words().end());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] &= b->words()[i];
  return std::make_shared<const SampleIndex>(std::move(words), a->windows());
}

}  // namespace batchfs
