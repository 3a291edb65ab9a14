#include "engine/view/split/part_windows.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "engine/base/strings.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/order/order.h"
#include "engine/view/samples/missing.h"
#include "engine/view/split/leak_check.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace part_windows_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Position = std::vector<std::int64_t>;  // along each dimension

struct Dim {
  std::string name;
  std::int64_t length, size, stride;
  bool wrap;
  std::int64_t low = 0, high = 0;  // offsets
  std::int64_t gap = 0;
};

/// A random view with a split, and each position's owner by the rules of the manual page.
struct RandomSplit {
  explicit RandomSplit(std::uint64_t seed) : random(seed) {
    const bool is_flat = pick(0, 1) == 0;
    for (const char* name : {"t", "x"}) {
      Dim dim{name, pick(4, 40), pick(1, 3), pick(1, 3), pick(0, 3) == 0};
      if (dim.name == "t") dim.low = -pick(0, 2), dim.high = pick(0, 2);
      if (dim.name == "x" && is_flat) dim.length = 3;
      if (dim.length < dim.size + dim.high - dim.low) dim.size = 1, dim.low = dim.high = 0;
      dims.push_back(dim);
    }
    split_dims = is_flat ? 1 : 2;
    for (std::size_t d = 0; d < split_dims; ++d) dims[d].gap = pick(0, 1) * pick(0, 4);
    pick(0, 2) == 0 ? regions() : blocks();
  }

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }

  void regions() {
    // Cells of a random grid, dealt to parts, so that regions do not overlap.
    std::vector<std::vector<std::int64_t>> cuts;
    for (std::size_t d = 0; d < split_dims; ++d) {
      std::set<std::int64_t> at{0, dims[d].length};
      for (int i = 0; i < 3; ++i) at.insert(pick(1, dims[d].length - 1));
      cuts.emplace_back(at.begin(), at.end());
    }
    parts = {"train", "val", "test"};
    rest = pick(0, 3) > 0 ? 0 : -1;
    std::map<int, std::vector<std::string>> of_part;
    std::vector<std::size_t> at(split_dims);
    for (bool more = true; more;) {
      const int part = static_cast<int>(pick(rest == 0 ? 0 : -1, 2));
      std::vector<std::string> box;
      for (std::size_t d = 0; d < split_dims; ++d)
        box.push_back(fmt::format(R"("{}": {{"from": "#{}", "to": "#{}"}})", dims[d].name,
                                  cuts[d][at[d]], cuts[d][at[d] + 1]));
      if (part > rest) of_part[part].push_back("{" + join(box, ", ") + "}");
      each_position({}, 0, [&](const Position& p) {
        for (std::size_t d = 0; d < split_dims; ++d)
          if (p[d] < cuts[d][at[d]] || p[d] >= cuts[d][at[d] + 1]) return;
        owner[p] = part;
      });
      more = false;
      for (std::size_t d = split_dims; d-- > 0;) {
        if (++at[d] + 1 < cuts[d].size()) {
          more = true;
          break;
        }
        at[d] = 0;
      }
    }
    std::vector<std::string> texts;
    for (int p = 0; p < 3; ++p) {
      if (p == rest)
        texts.push_back(R"("train": "rest")");
      else if (of_part.contains(p))
        texts.push_back(fmt::format(R"("{}": [{}])", parts[static_cast<std::size_t>(p)],
                                    join(of_part[p], ", ")));
    }
    valid = texts.size() >= 2;
    split = fmt::format(R"("parts": {{{}}})", join(texts, ", "));
    written = std::move(of_part);
  }

  void blocks() {
    std::vector<std::int64_t> lengths, counts;
    std::vector<std::string> texts;
    std::int64_t all = 1;
    for (std::size_t d = 0; d < split_dims; ++d) {
      lengths.push_back(pick(dims[d].size + dims[d].high - dims[d].low, dims[d].length));
      counts.push_back((dims[d].length + lengths[d] - 1) / lengths[d]);
      all *= counts[d];
      texts.push_back(fmt::format(R"("{}": {})", dims[d].name, lengths[d]));
    }
    valid = all >= 2;
    parts = {"a", "b"};
    const auto seed = static_cast<std::uint64_t>(pick(0, 1000));
    const std::int64_t first = (all * 7 + 9) / 10 == all ? all - 1 : (all * 7 + 9) / 10;
    const double share = static_cast<double>(first) / static_cast<double>(all);
    split =
        fmt::format(R"("blocks": {{{}}}, "fractions": {{"a": {:.17g}, "b": {:.17g}}}, "seed": {})",
                    join(texts, ", "), share, 1 - share, seed);
    if (!valid) return;
    const Permutation permute(all, seed, 0, 3);
    each_position({}, 0, [&](const Position& p) {
      std::int64_t block = 0;
      for (std::size_t d = 0; d < split_dims; ++d) block = block * counts[d] + p[d] / lengths[d];
      owner[p] = permute(block) < first ? 0 : 1;
    });
  }

  void each_position(Position at, std::size_t d, const std::function<void(const Position&)>& use) {
    if (d == split_dims) return use(at);
    at.push_back(0);
    for (; at.back() < dims[d].length; ++at.back()) each_position(at, d + 1, use);
  }

  std::string view() const {
    std::vector<std::string> window, gap;
    for (const Dim& dim : dims) {
      window.push_back(fmt::format(R"("{}": {{"size": {}, "stride": {}, "wrap": {}}})", dim.name,
                                   dim.size, dim.stride, dim.wrap));
      if (dim.gap > 0) gap.push_back(fmt::format(R"("{}": {})", dim.name, dim.gap));
    }
    return fmt::format(
        R"({{"window": {{{}}}, "batch": 100000, "tensors": {{"v": {{"variables": ["v"], "offsets": {{"t": [{}, {}]}}}}}},
             "order": {{"shuffle": "global"}}, "split": {{{}{}}}}})",
        join(window, ", "), dims[0].low, dims[0].high, split,
        gap.empty() ? "" : fmt::format(R"(, "gap": {{{}}})", join(gap, ", ")));
  }

  /// Positions of the footprint of the window at a start.
  std::vector<std::int64_t> footprint(std::size_t d, std::int64_t start) const {
    std::vector<std::int64_t> positions;
    const Dim& dim = dims[d];
    for (std::int64_t p = start + dim.low; p < start + dim.high + dim.size; ++p)
      positions.push_back(((p % dim.length) + dim.length) % dim.length);
    return positions;
  }

  bool within_gap(std::size_t d, const std::vector<std::int64_t>& footprint, std::int64_t p) const {
    for (const std::int64_t q : footprint) {
      std::int64_t distance = std::abs(p - q);
      if (dims[d].wrap) distance = std::min(distance, dims[d].length - distance);
      if (distance <= dims[d].gap) return true;
    }
    return false;
  }

  /// 0: other, 1: straddling, 2: in the gap, 3: a sample.
  int verdict(int part, const std::vector<std::vector<std::int64_t>>& footprints) const {
    bool all = true, any = false, near = false;
    for (const auto& [p, owns] : owner) {
      bool in = true, around = true;
      for (std::size_t d = 0; d < split_dims; ++d) {
        in = in && std::count(footprints[d].begin(), footprints[d].end(), p[d]) > 0;
        around = around && within_gap(d, footprints[d], p[d]);
      }
      if (in) (owns == part ? any : all) = owns == part;
      const bool stronger = owns > part && owns != rest;
      near = near || (around && owns >= 0 && (part == rest ? owns != part : stronger));
    }
    return all ? near ? 2 : 3 : any ? 1 : 0;
  }

  std::mt19937_64 random;
  std::vector<Dim> dims;
  std::size_t split_dims = 1;
  std::vector<std::string> parts;
  int rest = -1;
  bool valid = true;
  std::string split;
  std::map<Position, int> owner;  // of each position; -1: none
  std::map<int, std::vector<std::string>> written;
};

/// All starts of a dimension.
std::vector<std::int64_t> starts_of(const Dim& dim) {
  std::vector<std::int64_t> starts;
  for (std::int64_t s = 0; s < dim.length; s += dim.stride)
    if (dim.wrap || (s + dim.low >= 0 && s + dim.high + dim.size <= dim.length))
      starts.push_back(s);
  return starts;
}

/// Checks, by brute force, the samples of all parts, the sums of the dropped ones, and the leak
/// check.
void check(std::uint64_t seed) {
  RandomSplit random(seed);
  if (!random.valid) return;
  const auto dataset =
      MemoryData()
          .declare("v", "<f4", {"t", "x"}, {random.dims[0].length, random.dims[1].length}, {5, 7})
          .dataset();
  const std::string text = random.view();
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, text));
  const auto times = starts_of(random.dims[0]), places = starts_of(random.dims[1]);
  if (times.empty() || places.empty()) return;
  std::vector<std::shared_ptr<const View>> views;
  std::set<Position> used;  // samples of any part
  std::int64_t in_parts = 0;
  bool all_parts = true;
  for (const std::string& name : split_names(text, "f")) {
    const int part = static_cast<int>(std::find(random.parts.begin(), random.parts.end(), name) -
                                      random.parts.begin());
    std::vector<Position> expected;
    std::int64_t counts[4] = {};
    for (const std::int64_t t : times)
      for (const std::int64_t x : places) {
        std::vector<std::vector<std::int64_t>> footprints{random.footprint(0, t)};
        if (random.split_dims == 2) footprints.push_back(random.footprint(1, x));
        const int verdict = random.verdict(part, footprints);
        ++counts[verdict];
        if (verdict == 3) expected.push_back({t, x});
      }
    if (expected.empty()) {
      all_parts = false;
      const Error error = error_of([&] { View::parse(dataset, text, "v", "f", {.part = name}); });
      EXPECT_THAT(error.why(),
                  testing::AnyOf(HasSubstr("no sample is left"), HasSubstr("as long as a sample")));
      EXPECT_THAT(error.why(), HasSubstr("split."));
      continue;
    }
    const auto view = View::parse(dataset, text, "v", "f", {.part = name});
    views.push_back(view);
    EXPECT_EQ(all_windows(*view), static_cast<std::int64_t>(times.size() * places.size()));
    EXPECT_THAT(dropped_windows(*view),
                ElementsAre(Pair("split", counts[0] + counts[1]), Pair("gap", counts[2])));
    EXPECT_EQ(view->samples(), counts[3]);
    in_parts += counts[2] + counts[3];
    // In their order without a shuffle, which is that of their numbers.
    std::vector<Position> found(static_cast<std::size_t>(view->samples()));
    const std::vector<std::int64_t> numbers = view->batch_samples(0, 0);
    const std::vector<Dims> starts = view->window_starts(0, 0);
    ASSERT_EQ(starts.size(), found.size());
    for (std::size_t i = 0; i < starts.size(); ++i)
      found[static_cast<std::size_t>(numbers[i])] = {starts[i][0], starts[i][1]};
    ASSERT_EQ(found, expected);
    for (const Position& start : found) EXPECT_TRUE(used.insert(start).second);
  }
  if (!all_parts || views.size() < 2) return;
  EXPECT_LE(in_parts, static_cast<std::int64_t>(times.size() * places.size()));
  const LeakCheck leaks = check_leaks(views);
  EXPECT_EQ(leaks.shared, 0);
  for (const LeakCheck::Distance& distance : leaks.distances)
    EXPECT_GT(distance.positions, random.dims[distance.dim == "t" ? 0 : 1].gap);
}

TEST(PartWindows, RandomSplitsAreAsBruteForceHasThem) {
  const char* count = std::getenv("BATCHFS_RANDOM_SPLITS");
  const std::uint64_t views = count != nullptr ? std::strtoull(count, nullptr, 10) : 300;
  for (std::uint64_t seed = 0; seed < views && !testing::Test::HasFailure(); ++seed) check(seed);
}

TEST(PartWindows, APartWithoutSamplesSaysWhy) {
  const auto dataset = MemoryData().declare("v", "<f4", {"t"}, {30}, {5}).dataset();
  const auto why = [&](const std::string& split, const std::string& part) {
    return error_of([&] {
             View::parse(dataset,
                         R"({"window": {"t": {"size": 4, "stride": 1}}, "split": )" + split + "}",
                         "v", "f", {.part = part});
           })
        .why();
  };
  EXPECT_THAT(
      why(R"({"parts": {"train": "rest", "val": [{"t": ["#10", "#11"]}]}})", "val"),
      HasSubstr("split.parts.val: no sample is left: of 27 windows, 22 lie outside of the part, "
                "5 straddle its border, and the gap takes 0"));
  EXPECT_THAT(
      why(R"({"parts": {"train": "rest", "val": [{"t": {"from": "#5", "to": "#25"}}]}, "gap": {"t": 4}})",
          "train"),
      HasSubstr("split.parts.train: no sample is left: of 27 windows, 17 lie outside of the part, "
                "6 straddle its border, and the gap takes 4"));
  EXPECT_THAT(why(R"({"blocks": {"t": 3}, "folds": 2})", "fold-0-val"),
              HasSubstr("split.blocks.t: no block is as long as a sample: each of 27 windows would "
                        "straddle two; blocks of 't' have at most 3 positions, write blocks of at "
                        "least 4 positions"));
}

TEST(PartWindows, AGapThatTakesNothingIsAWarning) {
  const auto dataset = MemoryData().declare("v", "<f4", {"t", "x"}, {30, 4}, {5, 4}).dataset();
  const auto view = View::parse(
      dataset,
      R"({"window": {"t": 1, "x": 1}, "split": {"blocks": {"t": 3}, "folds": 2, "gap": {"x": 2}}})",
      "v", "f", {.part = "fold-1-val"});
  EXPECT_EQ(view->name(), "v-fold-1-val");
  EXPECT_THAT(view_warnings(*view),
              ElementsAre(HasSubstr("split.gap.x: the parts do not differ along 'x'")));
  EXPECT_EQ(resolved_view(*view)["split"]["part"], "fold-1-val");
}

TEST(PartWindows, TheResolvedViewIsThePart) {
  const auto dataset = MemoryData().declare("v", "<f4", {"t"}, {30}, {5}).dataset();
  const auto view = View::parse(dataset, R"({"window": {"t": 1}, "batch": 2,
      "split": {"blocks": {"t": 3}, "fractions": {"a": 0.5, "b": 0.5}, "with": {"b": {"batch": 4, "order": {"shuffle": "global"}}}}})",
                                "v", "f", {.part = "b"});
  EXPECT_EQ(view->batch_size(), 4);
  const auto again = parse_view(dataset, resolved_view(*view).dump());
  EXPECT_EQ(again->name(), "v-b");
  EXPECT_EQ(resolved_view(*again), resolved_view(*view));
  EXPECT_EQ(again->window_starts(0, 2), view->window_starts(0, 2));
}

TEST(PartWindows, ABillionSamplesNeedNoMemoryOfTheirOwn) {
  MemoryData big;
  std::vector<std::int32_t> times;
  for (std::int32_t i = 0; i < 100'000; ++i) times.push_back(6 * i);
  big.declare("v", "<f4", {"time", "y", "x"}, {100'000, 100, 100}, {10, 100, 100})
      .index("time", "<i4", times, {{"units", "hours since 1900-01-01"}});
  const auto dataset = big.dataset();
  const std::string window = R"({"window": {"time": {"size": 4, "stride": 1}, "y": 1, "x": 1},
                                 "order": {"shuffle": "global"}, "split": )";
  for (
      const char* split :
      {R"({"parts": {"train": "rest", "val": [{"time": {"from": "1950", "to": "1955"}}]}, "gap": {"time": "10d"}}})",
       R"({"blocks": {"time": "30d"}, "fractions": {"train": 0.8, "val": 0.2}, "gap": {"time": "3d"}}})",
       R"({"groups": {"time": "year"}, "fractions": {"train": 0.8, "val": 0.2}}})"}) {
    const auto view = View::parse(dataset, window + split, "v", "f", {.part = "train"});
    EXPECT_GT(view->samples(), 500'000'000);
    visit_windows(*view, [](const RestrictedView&, const ViewScan& scan) {
      EXPECT_EQ(scan.chosen, nullptr);
    });
  }
}

}  // namespace part_windows_test
}  // namespace batchfs
