#include "engine/view/rows/patch_rows.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Plans list every patch of a batch.
constexpr std::int64_t kMaxPatches = INT64_C(1) << 24;

}  // namespace

const std::int64_t* find_dim(const std::vector<std::pair<std::string, std::int64_t>>& list,
                             const std::string& dim) {
  for (const auto& [name, value] : list)
    if (name == dim) return &value;
  return nullptr;
}

PatchRows::PatchRows(const Dataset& dataset, const XbatcherSpec& spec,
                     std::vector<std::string> others, ViewAxes& axes)
    : spec_(spec), others_(std::move(others)) {
  for (const auto& [dim, shared] : spec_.input_overlap)
    check_dim(dataset, axes, dim, "input_overlap");
  // Batch dimensions first, then input dimensions, each in the order given.
  for (const auto& [dim, size] : spec_.batch_dims)
    if (!find_dim(spec_.input_dims, dim)) slice(dataset, axes, dim, size, "batch_dims");
  for (const auto& [dim, size] : spec_.input_dims) slice(dataset, axes, dim, size, "input_dims");
  group_patches(axes);
}

/// The dataset has the dimension and the selection leaves it.
void PatchRows::check_dim(const Dataset& dataset, const ViewAxes& axes, const std::string& dim,
                          const char* key) const {
  try {
    dataset.dim_size(dim);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("xbatcher.{}.{}: {}", key, dim, error.why()));
  }
  if (axes.along(dim).drops_dim())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "xbatcher.{}.{}: \"select\" takes one position of it, which drops the dimension", key,
            dim));
}

void PatchRows::slice(const Dataset& dataset, ViewAxes& axes, const std::string& dim,
                      std::int64_t size, const char* key) {
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("xbatcher.{}.{}: {}", key, dim, why));
  };
  check_dim(dataset, axes, dim, key);
  const std::int64_t length = axes.along(dim).size();
  if (size > length) throw fail(fmt::format("{} is more than the {} there are", size, length));
  const std::int64_t* overlap = find_dim(spec_.input_overlap, dim);
  const std::int64_t shared = overlap ? *overlap : 0;
  if (shared >= size)
    throw fail(fmt::format("the overlap {} is not smaller than the size {}", shared, size));
  sliced_.push_back({dim, size, size - shared, (length - shared) / (size - shared)});
  axes.windows.push_back({dim, size, false});
}

void PatchRows::group_patches(const ViewAxes& axes) {
  std::int64_t in_batch = 1;
  const bool duplicate =
      std::any_of(spec_.batch_dims.begin(), spec_.batch_dims.end(),
                  [&](const auto& d) { return find_dim(spec_.input_dims, d.first); });
  for (Sliced& s : sliced_) {
    const std::int64_t* batch = find_dim(spec_.batch_dims, s.dim);
    const bool is_input = find_dim(spec_.input_dims, s.dim) != nullptr;
    if (!spec_.concat_input_dims || (batch && !duplicate)) {
      s.per_batch = 1;
      s.batches = s.patches;
    } else if (batch) {
      // xbatcher groups by count, not by containment.
      s.per_batch = is_input ? (*batch + s.stride - 1) / s.stride : 1;
      s.batches = axes.along(s.dim).size() / *batch;
    } else {
      s.per_batch = s.patches;
      s.batches = 1;
    }
    if (s.batches < 1 || (s.batches - 1) * s.per_batch >= s.patches)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "xbatcher.batch_dims.{}: xbatcher has a batch without patches here and fails; "
              "use a batch length that is a multiple of the input length",
              s.dim));
    if (__builtin_mul_overflow(batches_, s.batches, &batches_) || batches_ > INT64_C(1) << 60)
      throw Error(ErrorCode::not_supported, "xbatcher: more than 2^60 batches");
    if (__builtin_mul_overflow(in_batch, s.per_batch, &in_batch) || in_batch > kMaxPatches)
      throw Error(ErrorCode::not_supported,
                  fmt::format("xbatcher: more than {} patches in a batch", kMaxPatches));
  }
}

/// First patch and number of patches of each sliced dimension.
std::vector<std::pair<std::int64_t, std::int64_t>> PatchRows::patch_ranges(
    std::int64_t batch) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges(sliced_.size());
  for (std::size_t w = sliced_.size(); w-- > 0;) {
    const Sliced& s = sliced_[w];
    const std::int64_t first = batch % s.batches * s.per_batch;
    ranges[w] = {first, std::min(s.per_batch, s.patches - first)};
    batch /= s.batches;
  }
  return ranges;
}

std::int64_t PatchRows::row_count(std::int64_t batch) const {
  std::int64_t count = 1;
  for (const auto& [first, number] : patch_ranges(batch)) count *= number;
  return count;
}

int PatchRows::sliced_number(const std::string& dim) const {
  for (std::size_t w = 0; w < sliced_.size(); ++w)
    if (sliced_[w].dim == dim) return static_cast<int>(w);
  return -1;
}

std::int64_t PatchRows::extent(const ViewAxes& axes, const std::string& dim) const {
  const int w = sliced_number(dim);
  return w >= 0 ? sliced_[static_cast<std::size_t>(w)].size : axes.along(dim).size();
}

void PatchRows::starts_of(std::int64_t sample, std::int64_t* starts) const {
  const std::vector<std::pair<std::int64_t, std::int64_t>> ranges = patch_ranges(sample);
  for (std::size_t w = 0; w < ranges.size(); ++w) starts[w] = ranges[w].first * sliced_[w].stride;
}

std::vector<Dims> PatchRows::starts_in(std::int64_t, std::int64_t batch, RowRange range) const {
  const std::vector<std::pair<std::int64_t, std::int64_t>> ranges = patch_ranges(batch);
  std::vector<Dims> result;
  result.reserve(static_cast<std::size_t>(range.count));
  Dims at(ranges.size());
  std::int64_t rest = range.first;
  for (std::size_t w = ranges.size(); w-- > 0;) {
    at[w] = rest % ranges[w].second;
    rest /= ranges[w].second;
  }
  for (std::int64_t p = range.first; p < range.end(); ++p) {
    Dims& starts = result.emplace_back(ranges.size());
    for (std::size_t w = 0; w < ranges.size(); ++w)
      starts[w] = (ranges[w].first + at[w]) * sliced_[w].stride;
    for (std::size_t w = ranges.size(); w-- > 0;) {
      if (++at[w] < ranges[w].second) break;
      at[w] = 0;
    }
  }
  return result;
}

}  // namespace batchfs
