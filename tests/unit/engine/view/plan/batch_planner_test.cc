#include "engine/view/plan/batch_planner.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/dims.h"
#include "engine/view/batch_plan.h"
#include "engine/view/plan/chunk_walk.h"
#include "engine/view/rows/mixed_rows.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/mix/mixture.h"
#include "tests/unit/engine/view/view_folder.h"
#include "tests/unit/engine/view/walked_views.h"

namespace batchfs {
namespace batch_planner_test {

using namespace walked_views;
using List = std::vector<std::int64_t>;

/// The members of a plan that say what is read and where it goes, in their order.
std::vector<List> entries(const BatchPlan& plan) {
  std::vector<List> all;
  const auto add = [&all](List numbers, std::initializer_list<Dims> more) {
    for (const Dims& dims : more) numbers.insert(numbers.end(), dims.begin(), dims.end());
    all.push_back(std::move(numbers));
  };
  for (const ChunkUse& each : plan.chunks)
    add({0, each.variable, each.chunk, each.first_part, each.part_count}, {});
  for (const Part& each : plan.parts)
    add({1, each.tensor, each.repeat, each.offset},
        {each.source.start, each.source.shape, each.strides});
  for (const Padding& each : plan.paddings)
    add({2, each.tensor, each.offset}, {each.shape, each.strides});
  for (const GivenValue& each : plan.given) add({3, each.tensor, each.offset, each.sample}, {});
  for (const CombinedPart& each : plan.combined)
    add({4, each.combination, each.tensor, each.offset, each.operands}, {each.starts});
  return all;
}

/// A view of windows of walked_views::data().
std::string random_view(std::mt19937& random, const std::string& shuffle) {
  const auto upto = [&](int most) { return std::to_string(1 + random() % most); };
  std::string json = R"({"window": {"time": {"size": )" + upto(4) + R"(, "stride": )" + upto(5) +
                     R"(, "edge": ")" + (random() % 2 != 0 ? "pad" : "drop") + "\"}";
  if (random() % 2 != 0)
    json += R"(, "x": {"size": )" + upto(6) + R"(, "stride": )" + upto(3) + R"(, "wrap": true})";
  json += R"(}, "batch": )" + upto(40) + R"(, "order": {"shuffle": ")" + shuffle + "\"}";
  if (random() % 2 != 0)
    json += R"(, "select": {"level": 850})";
  else if (random() % 2 != 0)
    json += R"(, "tensors": {"a": {"variables": ["t"], "offsets": {"time": [-2, 0, 1]}},
        "b": {"variables": ["q"]}, "c": {"variables": ["t"], "coarsen": {"level": 2}}})";
  return json + "}";
}

/// The smallest limit with which `plan` does not throw no_memory.
template <class Plan>
std::uint64_t smallest_limit(Plan&& plan) {
  std::uint64_t fails = 0, works = 1 << 20;
  plan(PlanLimit{works});
  while (works - fails > 1) {
    const std::uint64_t limit = (works + fails) / 2;
    try {
      plan(PlanLimit{limit});
      works = limit;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_memory);
      fails = limit;
    }
  }
  return works;
}

TEST(BatchPlanner, SamplesArePlannedLikeTheirBatch) {
  std::mt19937 random(1);
  const auto dataset = data().dataset();
  for (int i = 0; i < 60; ++i) {
    const std::string json = random_view(random, i % 2 != 0 ? "global" : "none");
    const auto view = parse_view(dataset, json);
    for (const std::int64_t batch : {std::int64_t{0}, view->batches() - 1}) {
      const BatchPlan plan = view->plan(1, batch);
      List places(plan.samples.size());
      std::iota(places.begin(), places.end(), 0);
      const BatchPlan own = plan_samples(*view, plan.samples, places, {});
      EXPECT_EQ(entries(own), entries(plan)) << json;
      EXPECT_EQ(own.samples, plan.samples);
      EXPECT_EQ(own.padded, plan.padded);
      EXPECT_TRUE(own.shapes.empty());
    }
  }
}

TEST(BatchPlanner, ASampleGoesToItsPlace) {
  const ViewFolder folder;
  folder.write("rows.csv", "time,kind\n#3,7\n#1,8\n");
  const auto view = folder.parse(data().dataset(), R"({"window": {"time": 2}, "batch": 2,
      "variables": ["t", "q"], "samples": {"list": "rows.csv", "labels": ["kind"]}})");
  const BatchPlan first = plan_samples(*view, {1}, {0}, {}),
                  third = plan_samples(*view, {1}, {2}, {});
  ASSERT_GT(first.parts.size(), 1u);
  ASSERT_EQ(first.parts.size(), third.parts.size());
  const List bytes = {2 * 2 * 8 * 4, 2 * 8 * 4, 8};  // of a sample
  for (std::size_t p = 0; p < first.parts.size(); ++p)
    EXPECT_EQ(third.parts[p].offset, first.parts[p].offset + 2 * bytes[first.parts[p].tensor]);
  EXPECT_EQ(entries(third).back(), (List{3, 2, 2 * 8, 1}));
}

TEST(BatchPlanner, WalksMeetTheChunksOfThePlan) {
  std::mt19937 random(2);
  const auto dataset = data().dataset();
  for (const char* shuffle : {"none", "global", "block"})
    for (int i = 0; i < 40; ++i) {
      const std::string one = random_view(random, shuffle);
      auto view = parse_view(dataset, one);
      if (i % 4 == 0)
        view = parse_mixture({dataset, dataset}, R"({"mix": {"a": {"view": {"window": {"time": 2},
            "variables": ["t"]}}, "b": {"view": {"window": {"time": 2}, "variables": ["t"],
            "order": {"shuffle": ")" + std::string(shuffle) +
                                                     R"("}}}}, "batch": 5})");
      for (const std::int64_t batch : {std::int64_t{0}, view->batches() - 1}) {
        Chunks met;
        for (ChunkWalk& walk : chunk_walks(*view, 1, batch))
          while (const auto chunk = walk.next())
            if (std::find(met.begin(), met.end(),
                          Chunks::value_type(chunk->variable, chunk->chunk)) == met.end())
              met.emplace_back(chunk->variable, chunk->chunk);
        EXPECT_EQ(met, planned(*view, 1, batch)) << one;
      }
    }
}

TEST(BatchPlanner, PlansBeyondTheLimitAreRefused) {
  const auto dataset = data().dataset();
  const std::string own = R"("window": {"time": {"size": 3, "stride": 1}}, "variables": ["t"])";
  const auto view = parse_view(dataset, "{" + own + R"(, "batch": 8})");
  const BatchPlan plan = view->plan(0, 1);
  const List places = counting<std::int64_t>(8);
  const std::uint64_t needed = smallest_limit([&](PlanLimit limit) { view->plan(0, 1, limit); });
  EXPECT_GT(needed, plan.parts.size() * sizeof(Part));
  EXPECT_EQ(
      smallest_limit([&](PlanLimit limit) { plan_samples(*view, plan.samples, places, limit); }),
      needed);
  // The plans of a mixture's views are in memory together.
  const auto mixture = parse_mixture({dataset, dataset}, R"({"mix": {"a": {"view": {)" + own +
                                                             R"(}}, "b": {"view": {)" + own +
                                                             R"(}}}, "batch": 12})");
  const MixedRows& rows = *mixture->mixture();
  List numbers[2], rows_of[2];
  for (const MixedRows::Sample& sample : rows.samples_of(0, 0, {0, 12})) {
    rows_of[sample.component].push_back(std::ssize(numbers[0]) + std::ssize(numbers[1]));
    numbers[sample.component].push_back(sample.number);
  }
  const auto plan_of = [&](std::size_t c, PlanLimit limit) {
    return plan_samples(*rows.components()[c], numbers[c], rows_of[c], limit);
  };
  const std::uint64_t taken = sizeof(Part) * plan_of(0, {}).parts.size();
  const std::uint64_t first = smallest_limit([&](PlanLimit limit) { plan_of(0, limit); });
  const std::uint64_t second = smallest_limit([&](PlanLimit limit) { plan_of(1, limit); });
  EXPECT_EQ(smallest_limit([&](PlanLimit limit) { mixture->plan(0, 0, limit); }),
            std::max(first, taken + second));
}

}  // namespace batch_planner_test
}  // namespace batchfs
