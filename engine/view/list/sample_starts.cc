#include "engine/view/list/sample_starts.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/view/list/sample_list.h"
#include "engine/view/list/weights.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// The starts of a list, whose rows are in windows of the grid.
StartTable listed_starts(const ViewScan& scan, const Dims& counts, const Dataset& dataset) {
  const SampleList& list = *scan.list;
  constexpr std::uint64_t kRow = 5 * sizeof(std::int64_t);  // numbers, while they are sorted
  check_list(dataset, static_cast<std::uint64_t>(list.rows()) * kRow, "samples.list",
             "the places of the list's rows");
  std::vector<std::int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(list.rows()));
  Dims starts(counts.size());
  for (std::int64_t row = 0; row < list.rows(); ++row) {
    if (scan.draws != nullptr && !scan.draws->is_drawn(row)) continue;
    list.starts(row, starts.begin());
    std::int64_t number = 0;
    for (std::size_t w = 0; w < counts.size(); ++w) {
      std::int64_t place = starts[w];
      if (const auto* allowed = scan.grid.restricted(w))
        place = std::lower_bound(allowed->begin(), allowed->end(), place) - allowed->begin();
      number = number * counts[w] + place;
    }
    numbers.push_back(number);
  }
  return StartTable::of_numbers(counts, std::move(numbers));
}

/// Without the samples of a weight of 0.
StartTable drawn_starts(const ViewScan& scan, const Dims& counts, const Dataset& dataset) {
  const std::int64_t windows = element_count(counts);
  const auto size = static_cast<std::size_t>((windows + 63) / 64);
  check_list(dataset, size * sizeof(std::uint64_t), "samples.weights",
             "the windows of a weight above 0");
  const auto words = std::make_shared<std::vector<std::uint64_t>>(size);
  for (std::int64_t s = 0; s < scan.draws->samples(); ++s) {
    if (!scan.draws->is_drawn(s)) continue;
    const std::int64_t window = scan.chosen != nullptr ? scan.chosen->window(s) : s;
    (*words)[static_cast<std::size_t>(window / 64)] |= std::uint64_t{1} << (window % 64);
  }
  return StartTable::of_bits(counts, *words, words);
}

}  // namespace

StartTable sample_starts(const ViewScan& scan, const Dataset& dataset) {
  Dims counts;
  for (const std::int64_t count : scan.grid.counts) counts.push_back(count);
  if (scan.list == nullptr && scan.draws == nullptr && scan.chosen == nullptr)
    return StartTable::whole(counts);
  constexpr std::uint64_t kStart = 128;  // in a table, and in lists of the positions of windows
  std::uint64_t starts = 0;
  for (const std::int64_t count : counts) starts += static_cast<std::uint64_t>(count);
  check_list(dataset, starts * kStart, "samples", "the starts along each dimension");
  if (scan.list != nullptr) return listed_starts(scan, counts, dataset);
  if (scan.draws != nullptr) return drawn_starts(scan, counts, dataset);
  return StartTable::of_bits(counts, scan.chosen->words(), scan.chosen);
}

}  // namespace batchfs
