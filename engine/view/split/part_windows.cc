#include "engine/view/split/part_windows.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// 1 GiB of bits.
constexpr std::int64_t kMaxIndexed = INT64_C(1) << 33;

/// Throws where no block is as long as a footprint.
void check_blocks(const SplitSpec& split, const PartBoxes& boxes, std::size_t axis,
                  std::int64_t shortest, std::int64_t windows) {
  const SplitAxis& along = boxes.axes()[axis];
  for (const SplitSpec::Length& block : split.blocks) {
    if (block.dim != along.dim || boxes.longest_block(axis) >= shortest) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: no block is as long as a sample: each of {} would straddle two; blocks "
                    "of '{}' have at most {}, write blocks of at least {}",
                    block.path, counted(windows, "window"), block.dim,
                    counted(boxes.longest_block(axis), "position"), counted(shortest, "position")));
  }
}

std::vector<std::string> gaps_without_effect(const SplitSpec& split,
                                             const std::vector<SplitAxis>& axes) {
  std::vector<std::string> warnings;
  for (const SplitSpec::Length& gap : split.gap)
    if (std::none_of(axes.begin(), axes.end(),
                     [&](const SplitAxis& axis) { return axis.dim == gap.dim; }))
      warnings.push_back(
          fmt::format("{}: the parts do not differ along '{}', so the gap leaves nothing out",
                      gap.path, gap.dim));
  return warnings;
}

/// The bits of an index, filled window by window.
class IndexBits {
 public:
  explicit IndexBits(std::int64_t windows)
      : words_(static_cast<std::size_t>((windows + 63) / 64)), windows_(windows) {}

  void fill(std::int64_t first, std::int64_t end) {
    while (first < end) {
      const std::int64_t here = std::min(end - first, 64 - first % 64);
      const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
      words_[static_cast<std::size_t>(first / 64)] |= ones << (first % 64);
      first += here;
    }
  }
  std::shared_ptr<const SampleIndex> index() {
    return std::make_shared<const SampleIndex>(std::move(words_), windows_);
  }

 private:
  std::vector<std::uint64_t> words_;
  std::int64_t windows_;
};

/// Writes the samples of boxes of runs into an index over the whole grid.
class IndexFiller {
 public:
  /// `runs`: along each window dimension, one run of all starts where the split is not along it.
  /// `samples`: of each box of runs, row-major.
  IndexFiller(const WindowGrid& grid, const std::vector<std::vector<FootprintRun>>& runs,
              const std::vector<bool>& samples)
      : grid_(grid), runs_(runs), samples_(samples), bits_(count_windows(grid)) {}

  std::shared_ptr<const SampleIndex> fill() {
    descend(0, 0, 0);
    return bits_.index();
  }

 private:
  void descend(std::size_t w, std::int64_t window, std::size_t box) {
    const std::vector<FootprintRun>& runs = runs_[w];
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::size_t inner = box * runs.size() + r;
      const std::int64_t first = window * grid_.counts[w] + runs[r].first;
      if (w + 1 == runs_.size()) {
        if (samples_[inner]) bits_.fill(first, first + runs[r].count);
        continue;
      }
      for (std::int64_t i = 0; i < runs[r].count; ++i) descend(w + 1, first + i, inner);
    }
  }

  const WindowGrid& grid_;
  const std::vector<std::vector<FootprintRun>>& runs_;
  const std::vector<bool>& samples_;
  IndexBits bits_;
};

Error no_sample(const SplitSpec& split, const SplitPart& part, std::int64_t windows,
                std::int64_t straddling, std::int64_t in_gap) {
  const std::string path = split.folds > 0 ? fmt::format("{}: {}", split.shares_path, part.name)
                                           : split.parts[part.part].path;
  return Error(ErrorCode::invalid_argument,
               fmt::format("{}: no sample is left: of {}, {} outside of the part, {} its border, "
                           "and the gap takes {}",
                           path, counted(windows, "window"),
                           counted(windows - straddling - in_gap, "lies", "lie"),
                           counted(straddling, "straddles", "straddle"), in_gap));
}

}  // namespace

PartWindows keep_part(const RestrictedView& view, const SplitSpec& split, const SplitPart& part,
                      WindowGrid& grid) {
  const PartBoxes boxes(view, split, part);
  const std::size_t dims = grid.counts.size();
  const std::int64_t windows = count_windows(grid);
  std::vector<std::vector<FootprintRun>> runs(dims);
  std::vector<int> axis_of(dims, -1);
  for (std::size_t a = 0; a < boxes.axes().size(); ++a) {
    const std::size_t w = boxes.axes()[a].window;
    axis_of[w] = static_cast<int>(a);
    std::int64_t shortest = INT64_MAX;
    runs[w] = boxes.runs(a, grid.counts[w], [&](std::int64_t i) {
      const auto footprint = view.reaches[w].footprint(grid.start(w, i));
      shortest = std::min(
          shortest, std::min(footprint.second, boxes.axes()[a].positions()) - footprint.first);
      return footprint;
    });
    check_blocks(split, boxes, a, shortest, windows);
  }
  for (std::size_t w = 0; w < dims; ++w)
    if (axis_of[w] < 0) runs[w].push_back({0, grid.counts[w], {}, {}});

  std::vector<bool> samples;
  std::int64_t sampled = 0, in_gap = 0, straddling = 0;
  std::vector<const FootprintRun*> split_box(boxes.axes().size());
  for_each_box(runs, [&](const std::vector<const FootprintRun*>& box) {
    std::int64_t here = 1;
    for (std::size_t w = 0; w < dims; ++w) {
      here *= box[w]->count;
      if (axis_of[w] >= 0) split_box[static_cast<std::size_t>(axis_of[w])] = box[w];
    }
    const PartVerdict verdict = boxes.verdict(split_box);
    samples.push_back(verdict == PartVerdict::sample);
    if (samples.back()) sampled += here;
    if (verdict == PartVerdict::in_gap) in_gap += here;
    if (verdict == PartVerdict::straddling) straddling += here;
  });
  if (sampled == 0) throw no_sample(split, part, windows, straddling, in_gap);

  PartWindows result;
  result.warnings = gaps_without_effect(split, boxes.axes());
  result.dropped = {{"split", windows - sampled - in_gap}, {"gap", in_gap}};
  if (sampled == windows) return result;
  if (boxes.axes().size() > 1) {
    if (windows > kMaxIndexed)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: a split along several dimensions of {}; the most is {}",
                              split.path, counted(windows, "window"), kMaxIndexed));
    result.index = IndexFiller(grid, runs, samples).fill();
    return result;
  }
  const std::size_t w = boxes.axes().front().window;
  GrowingStarts left(view.dataset, split.path);
  for (std::size_t r = 0; r < runs[w].size(); ++r)
    for (std::int64_t i = 0; samples[r] && i < runs[w][r].count; ++i)
      left.push_back(grid.number(w, runs[w][r].first + i));
  grid.keep(w, left.take());
  return result;
}

}  // namespace batchfs
