#include "engine/write/prediction/axis_windows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Offsets and lengths beyond this are not positions of an array: sums of them stay in 64 bits.
constexpr std::int64_t kMaxPosition = std::int64_t{1} << 60;

bool is_position(std::int64_t value) { return value >= -kMaxPosition && value <= kMaxPosition; }

void check(const PredictedAxis& axis, const std::vector<std::int64_t>& starts) {
  bool fits = axis.length >= 0 && axis.length <= kMaxPosition;
  if (axis.window >= 0) {
    fits = fits && std::is_sorted(starts.begin(), starts.end());
    if (!starts.empty()) fits = fits && is_position(starts.front()) && is_position(starts.back());
    if (axis.by_start) fits = fits && axis.length == static_cast<std::int64_t>(starts.size());
    for (const auto& [offset, size] : axis.blocks)
      fits = fits && is_position(offset) && size > 0 && size <= kMaxPosition;
    fits = fits && (axis.by_start || !axis.blocks.empty());
  }
  if (axis.labels != nullptr)
    fits = fits && static_cast<std::int64_t>(axis.labels->size()) == axis.length;
  if (!fits)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the axis '{}' has other labels, starts or positions than its {} "
                            "elements",
                            axis.name, axis.length));
}

}  // namespace

AxisWindows::AxisWindows(const PredictedAxis& axis, std::vector<std::int64_t> starts,
                         Overlap overlap, bool is_grid)
    : axis_(axis), starts_(axis.window < 0 ? std::vector<std::int64_t>{0} : std::move(starts)) {
  check(axis_, starts_);
  find_sharing(overlap, is_grid);
  set_step(std::max<std::int64_t>(1, axis_.length));
}

void AxisWindows::find_sharing(Overlap overlap, bool is_grid) {
  if (axis_.window < 0 || axis_.by_start) return;
  const std::int64_t size = axis_.blocks.front().second;
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < starts_.size(); ++i) gaps.push_back(starts_[i] - starts_[i - 1]);
  const bool around = axis_.wraps && starts_.size() > 1;
  if (around) gaps.push_back(starts_.front() + axis_.length - starts_.back());
  if (axis_.blocks.size() > 1 || (axis_.wraps && size > axis_.length)) {
    sharing_ = positions_collide() ? Sharing::collide : Sharing::none;
    return;
  }
  if (starts_.size() < 2 || *std::min_element(gaps.begin(), gaps.end()) >= size) return;
  sharing_ = Sharing::overlap;
  if (overlap == Overlap::trim && is_grid) {
    cut(size, gaps, around);
  } else if (overlap == Overlap::trim) {
    // See nearest() of the fold: the sample whose middle is nearest has the element.
    std::vector<double> squares;
    for (std::int64_t i = 0; i < size; ++i) {
      const double distance =
          (static_cast<double>(i) - static_cast<double>(size - 1) / 2) / static_cast<double>(size);
      squares.push_back(distance * distance);
    }
    weights_.push_back(std::move(squares));
    weights_of_.assign(starts_.size(), 0);
  } else if (overlap == Overlap::mean || overlap == Overlap::cosine) {
    weigh(size, gaps, around, overlap == Overlap::cosine);
  }
}

bool AxisWindows::positions_collide() const {
  // Intervals suffice: an axis may have more positions than memory.
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // (first, after the last)
  const auto take = [&taken, this](std::int64_t first, std::int64_t count) {
    const std::int64_t begin = std::max<std::int64_t>(0, first);
    const std::int64_t end = std::min(axis_.length, first + count);
    if (begin < end) taken.emplace_back(begin, end);
  };
  for (const std::int64_t start : starts_)
    for (const auto& [offset, size] : axis_.blocks) {
      const std::int64_t length = axis_.length;
      if (!axis_.wraps || length == 0) {
        take(start + offset, size);
        continue;
      }
      if (size > length) return true;
      const std::int64_t first = ((start + offset) % length + length) % length;
      take(first, std::min(size, length - first));
      take(0, size - (length - first));
    }
  std::sort(taken.begin(), taken.end());
  for (std::size_t i = 1; i < taken.size(); ++i)
    if (taken[i].first < taken[i - 1].second) return true;
  return false;
}

/// Each position goes to the window in whose middle it lies; halfway, to the earlier one.
void AxisWindows::cut(std::int64_t size, const std::vector<std::int64_t>& gaps, bool around) {
  // Halves are rounded down, also below 0.
  const auto half = [](std::int64_t value) { return value >> 1; };
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    Cut kept{0, size};
    if (i > 0 || around) {
      const std::int64_t gap = i > 0 ? gaps[i - 1] : gaps.back();
      kept.low = std::max<std::int64_t>(0, half(size - 1 - gap) + 1);
    }
    if (i < gaps.size()) kept.high = std::min(size, half(size - 1 + gaps[i]) + 1);
    cuts_.push_back(kept);
  }
}

/// 1, with ramps where a window overlaps its neighbours.
void AxisWindows::weigh(std::int64_t size, const std::vector<std::int64_t>& gaps, bool around,
                        bool cosine) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    std::int64_t before = 0, behind = 0;  // positions shared with the neighbours
    if (cosine && (i > 0 || around)) before = size - (i > 0 ? gaps[i - 1] : gaps.back());
    if (cosine && i < gaps.size()) behind = size - gaps[i];
    before = std::max<std::int64_t>(0, before);
    behind = std::max<std::int64_t>(0, behind);
    const auto [found, is_new] = known.try_emplace({before, behind}, weights_.size());
    weights_of_.push_back(found->second);
    if (!is_new) continue;
    std::vector<double>& weights = weights_.emplace_back(static_cast<std::size_t>(size), 1.0);
    const auto ramp = [](std::int64_t x, std::int64_t count) {
      const double angle =
          std::numbers::pi / 2 * (static_cast<double>(x) + 0.5) / static_cast<double>(count);
      const double sine = std::sin(angle);
      return sine * sine;
    };
    for (std::int64_t x = 0; x < before; ++x)
      weights[static_cast<std::size_t>(x)] *= ramp(x, before);
    for (std::int64_t x = 0; x < behind; ++x)
      weights[static_cast<std::size_t>(size - 1 - x)] *= ramp(x, behind);
  }
}

void AxisWindows::set_step(std::int64_t step) {
  step_ = step;
  objects_of_.clear();
  for (const std::int64_t start : starts_) {
    std::vector<std::int64_t>& numbers = objects_of_.emplace_back();
    for (const AxisPiece& piece : pieces(start)) numbers.push_back(piece.object);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
}

std::size_t AxisWindows::index_of(std::int64_t start) const {
  if (axis_.window < 0) return 0;
  const auto found = std::lower_bound(starts_.begin(), starts_.end(), start);
  if (found == starts_.end() || *found != start)
    throw Error(ErrorCode::internal,
                fmt::format("no window begins at {} along '{}'", start, axis_.name));
  return static_cast<std::size_t>(found - starts_.begin());
}

const std::vector<std::int64_t>& AxisWindows::objects_of(std::int64_t start) const {
  return objects_of_[index_of(start)];
}

const double* AxisWindows::weights(std::int64_t start) const {
  return weights_.empty() ? nullptr : weights_[weights_of_[index_of(start)]].data();
}

template <class Call>
void AxisWindows::each_segment(std::int64_t start, Call&& call) const {
  if (axis_.window < 0) return call(0, 0, axis_.length);
  const std::size_t index = index_of(start);
  if (axis_.by_start) return call(0, static_cast<std::int64_t>(index), 1);
  const Cut kept = cuts_.empty() ? Cut{0, axis_.extent()} : cuts_[index];
  const std::int64_t length = axis_.length;
  std::int64_t first = 0;
  for (const auto& [offset, size] : axis_.blocks) {
    std::int64_t begin = std::max(first, kept.low);
    const std::int64_t end = std::min(first + size, kept.high);
    std::int64_t place = start + offset + begin - first;
    first += size;
    if (place < 0 && !axis_.wraps) {  // padding before the first position
      begin -= place;
      place = 0;
    }
    while (begin < end && length > 0) {
      if (axis_.wraps) place = (place % length + length) % length;
      const std::int64_t count = std::min(end - begin, length - place);
      if (count <= 0) break;  // padding after the last position
      call(begin, place, count);
      begin += count;
      place += count;
      if (!axis_.wraps) break;
    }
  }
}

std::vector<AxisPiece> AxisWindows::pieces(std::int64_t start) const {
  std::vector<AxisPiece> pieces;
  each_segment(start, [&](std::int64_t source, std::int64_t place, std::int64_t count) {
    while (count > 0) {
      const std::int64_t inside = place % step_;
      const std::int64_t taken = std::min(count, step_ - inside);
      pieces.push_back({place / step_, source, inside, taken});
      source += taken;
      place += taken;
      count -= taken;
    }
  });
  return pieces;
}

std::vector<AxisPiece> AxisWindows::pieces_in(std::int64_t object, std::int64_t start) const {
  std::vector<AxisPiece> pieces;
  const std::int64_t low = object * step_, high = low + step_;
  each_segment(start, [&](std::int64_t source, std::int64_t place, std::int64_t count) {
    const std::int64_t from = std::max(place, low), to = std::min(place + count, high);
    if (from < to) pieces.push_back({object, source + from - place, from - low, to - from});
  });
  return pieces;
}

}  // namespace batchfs
