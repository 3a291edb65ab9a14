#include "engine/view/list/restricted_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/list/listed_samples.h"
#include "engine/view/samples/mask.h"
#include "engine/view/split/part_windows.h"

namespace batchfs {

namespace {

/// Where the starts of a grid are, for looking up many of them.
class GridNumbers {
 public:
  GridNumbers(const WindowGrid& grid, const Dims& lengths) : counts_(grid.counts) {
    for (std::size_t w = 0; w < counts_.size(); ++w) {
      std::vector<std::int64_t>& places = places_.emplace_back();
      if (grid.restricted(w) == nullptr) continue;  // every position is a start
      places.assign(static_cast<std::size_t>(lengths[w]), -1);
      for (std::int64_t i = 0; i < counts_[w]; ++i)
        places[static_cast<std::size_t>(grid.start(w, i))] = i;
    }
  }

  /// The window of a row; -1: the grid has none there.
  std::int64_t window(const Dims& starts) const {
    std::int64_t number = 0;
    for (std::size_t w = 0; w < counts_.size(); ++w) {
      const std::int64_t place =
          places_[w].empty() ? starts[w] : places_[w][static_cast<std::size_t>(starts[w])];
      if (place < 0) return -1;
      number = number * counts_[w] + place;
    }
    return number;
  }

 private:
  const Dims counts_;
  std::vector<std::vector<std::int64_t>> places_;
};

class Rows {
 public:
  Rows(const SampleList& list, RestrictedList& result)
      : list_(list), result_(result), kept_(static_cast<std::size_t>(list.rows()), true) {}

  /// Leaves out the rows that are in no window of the remaining grid. `path` and `what`: for the
  /// error where none is left.
  void drop(const std::string& restriction, const std::string& path, const std::string& what) {
    const std::int64_t before = left_;
    const GridNumbers numbers(result_.grid, list_.lengths());
    const SampleIndex* allowed = result_.allowed.get();
    Dims starts(list_.lengths().size());
    for (std::size_t row = 0; row < kept_.size(); ++row) {
      if (!kept_[row]) continue;
      list_.starts(static_cast<std::int64_t>(row), starts.begin());
      const std::int64_t window = numbers.window(starts);
      if (window >= 0 && (allowed == nullptr || allowed->contains(window))) continue;
      kept_[row] = false;
      --left_;
    }
    if (left_ == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: no sample is left: of {} of the list none {}", path,
                              counted(before, "row"), what));
    result_.dropped.emplace_back(restriction, before - left_);
  }

  /// Makes the list of the result that of the rows that are left.
  void take() {
    if (left_ < list_.rows()) result_.list = list();
    result_.kept = std::move(kept_);
  }

 private:
  std::shared_ptr<const SampleList> list() const {
    auto kept = std::make_shared<SampleList>(list_.lengths());
    kept->set_digest(list_.digest());
    Dims starts(list_.lengths().size());
    kept->codes().reserve(static_cast<std::size_t>(left_));
    for (std::size_t row = 0; row < kept_.size(); ++row) {
      if (!kept_[row]) continue;
      list_.starts(static_cast<std::int64_t>(row), starts.begin());
      std::int64_t code = 0;
      for (std::size_t w = 0; w < starts.size(); ++w) code += starts[w] * kept->steps()[w];
      kept->codes().push_back(code);
    }
    for (const ListColumn& column : list_.columns()) {
      ListColumn& copy = kept->columns().emplace_back();
      copy.name = column.name;
      copy.whole = column.whole;
      if (column.whole)
        take_kept(column.integers, copy.integers);
      else
        take_kept(column.floats, copy.floats);
    }
    return kept;
  }

  template <class T>
  void take_kept(const std::vector<T>& column, std::vector<T>& copy) const {
    copy.reserve(static_cast<std::size_t>(left_));
    for (std::size_t row = 0; row < kept_.size(); ++row)
      if (kept_[row]) copy.push_back(column[row]);
  }

  const SampleList& list_;
  RestrictedList& result_;
  std::vector<bool> kept_;
  std::int64_t left_ = list_.rows();
};

}  // namespace

std::shared_ptr<const RestrictedList> restrict_list(const ViewSpec& spec,
                                                    const RestrictedView& view,
                                                    std::shared_ptr<const SampleList> list) {
  auto result = std::make_shared<RestrictedList>();
  result->grid = grid_of(*list);
  result->list = list;
  const SampleSpec& samples = spec.samples;
  Rows rows(*list, *result);
  // One after the other, so that each is counted for itself.
  const auto restrict_by = [&](const SampleSpec& one) {
    restrict_windows({view.dataset, one, view.selected, view.windows, view.reaches, view.times},
                     result->grid);
  };
  if (!samples.spacing.empty()) {
    restrict_by({.spacing = samples.spacing});
    rows.drop("spacing", samples.spacing.front().path, "is evenly spaced");
  }
  if (!samples.where.empty()) {
    restrict_by({.where = samples.where});
    rows.drop("where", samples.where.front().path, "is like this");
  }
  const auto mask = [&] {
    Dropped windows;
    const auto left = restrict_by_mask(*spec.samples.mask, view, result->grid, windows);
    result->allowed = in_both(result->allowed, left);
    rows.drop("mask", samples.mask->path, "passes");
  };
  // The same order as in keep_allowed(): an index has the numbers of the grid, which a mask along
  // one dimension changes.
  const Variable* variable = samples.mask ? view.dataset.find(samples.mask->variable) : nullptr;
  const bool masked_first = variable != nullptr && variable->dims.size() == 1;
  if (masked_first) mask();
  if (spec.split) {
    const WindowGrid before = result->grid;
    const auto keep = [&](const SplitSpec& split) {
      PartWindows left = keep_part(view, split, spec.part, result->grid);
      result->allowed = std::move(left.index);
      result->warnings = std::move(left.warnings);
    };
    SplitSpec without_gap = *spec.split;
    without_gap.gap.clear();
    keep(without_gap);
    rows.drop("split", spec.split->path, fmt::format("lies in the part '{}'", spec.part.name));
    if (!spec.split->gap.empty()) {
      result->grid = before;
      keep(*spec.split);
      rows.drop("gap", spec.split->gap.front().path, "keeps the gap");
    }
  }
  if (samples.mask && !masked_first) mask();
  if (!result->dropped.empty()) rows.take();
  return result;
}

std::shared_ptr<const RestrictedList> without_missing_rows(
    const RestrictedList& before, const SkipRule& skip,
    std::shared_ptr<const SampleIndex> without) {
  auto result = std::make_shared<RestrictedList>(before);
  result->allowed = std::move(without);
  Rows rows(*before.list, *result);
  if (skip.at_most > 0)
    rows.drop("missing", "missing.at_most",
              fmt::format("has a share of at most {} that is NaN", skip.at_most));
  else
    rows.drop("missing", "missing.nan", "is without NaN");
  result->allowed = before.allowed;
  rows.take();
  if (!before.kept.empty()) {
    std::vector<bool> kept = before.kept;
    std::size_t row = 0;  // of the list before
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i]) kept[i] = result->kept[row++];
    result->kept = std::move(kept);
  }
  return result;
}

}  // namespace batchfs
