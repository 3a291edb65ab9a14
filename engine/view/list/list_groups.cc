#include "engine/view/list/list_groups.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// With this many groups, counting the samples of each costs less than sorting.
constexpr std::int64_t kMaxCounted = 1 << 22;

}  // namespace

GroupNumbers::GroupNumbers(const WindowedVariables& view,
                           const std::vector<std::pair<std::string, std::int64_t>>& span) {
  for (std::size_t w = 0; w < view.windows.size(); ++w) {
    const WindowDim& window = view.windows[w];
    const std::vector<std::int64_t>* by = view.by != nullptr ? &view.by->along(w) : nullptr;
    std::int64_t length = by != nullptr ? 1 : longest_chunk(view, window.name);
    for (const auto& [dim, chunks] : span)
      if (dim == window.name && __builtin_mul_overflow(length, chunks, &length)) length = INT64_MAX;
    axes_.push_back({&view.selected.at(window.name), by, length, 1});
  }
  for (std::size_t w = axes_.size(); w-- > 0;) {
    Axis& axis = axes_[w];
    axis.step = count_;
    std::int64_t last = 0;
    const std::int64_t size = axis.selected->size();
    for (std::int64_t p = axis.by == nullptr && axis.selected->is_range() ? size - 1 : 0; p < size;
         ++p)
      last = std::max(last, axis.number(p));
    if (__builtin_mul_overflow(count_, last + 1, &count_))
      throw Error(ErrorCode::not_supported,
                  "samples.list: the selection has more than 2^63 chunks");
  }
}

std::int64_t GroupNumbers::of(const std::int64_t* starts) const {
  std::int64_t number = 0;
  for (std::size_t w = 0; w < axes_.size(); ++w)
    number += axes_[w].number(starts[w]) * axes_[w].step;
  return deal_ ? (*deal_)(number) : number;
}

SequenceGroups group_sequence(
    const GroupNumbers& numbers, std::int64_t samples, std::size_t dims,
    const std::function<void(std::int64_t i, std::int64_t* starts)>& starts_of) {
  if (samples > static_cast<std::int64_t>(UINT32_MAX))
    throw Error(ErrorCode::not_supported,
                "order.shuffle: \"block\" takes at most 4294967295 listed samples");
  const auto size = static_cast<std::size_t>(samples);
  SequenceGroups result;
  result.places.resize(size);
  std::vector<std::int64_t> bounds;
  Dims starts(dims);
  const auto group = [&](std::int64_t i) {
    starts_of(i, starts.begin());
    return numbers.of(starts.begin());
  };
  if (numbers.count() <= kMaxCounted) {
    std::vector<std::int64_t> next(static_cast<std::size_t>(numbers.count()) + 1);
    for (std::int64_t i = 0; i < samples; ++i) ++next[static_cast<std::size_t>(group(i)) + 1];
    for (std::size_t g = 1; g < next.size(); ++g) {
      if (next[g] > 0) bounds.push_back(next[g - 1]);
      next[g] += next[g - 1];
    }
    for (std::int64_t i = 0; i < samples; ++i)
      result.places[static_cast<std::size_t>(next[static_cast<std::size_t>(group(i))]++)] =
          static_cast<std::uint32_t>(i);
  } else {
    std::vector<std::int64_t> groups(size);
    for (std::int64_t i = 0; i < samples; ++i) groups[static_cast<std::size_t>(i)] = group(i);
    std::iota(result.places.begin(), result.places.end(), 0U);
    std::sort(result.places.begin(), result.places.end(), [&](std::uint32_t a, std::uint32_t b) {
      return groups[a] != groups[b] ? groups[a] < groups[b] : a < b;
    });
    for (std::size_t i = 0; i < size; ++i)
      if (i == 0 || groups[result.places[i]] != groups[result.places[i - 1]])
        bounds.push_back(static_cast<std::int64_t>(i));
  }
  bounds.push_back(samples);
  bounds.shrink_to_fit();
  ChunkGroups::Axis axis{samples, 0, 1, std::move(bounds)};
  result.groups.axes.push_back(std::move(axis));
  return result;
}

std::int64_t default_list_mixing(const WindowedVariables& view,
                                 const std::vector<std::pair<std::string, std::int64_t>>& span) {
  return default_mixing(view, [&](const std::string& dim) {
    auto positions = static_cast<double>(longest_chunk(view, dim));
    for (const auto& [along, times] : span)
      if (along == dim) positions *= static_cast<double>(times);
    return positions;
  });
}

}  // namespace batchfs
