#include "engine/view/samples/start_table.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

namespace batchfs {
namespace start_table_test {

using testing::ElementsAre;
using Choice = std::vector<std::int64_t>;

StartTable of_bits(const Dims& lengths, const std::vector<bool>& samples) {
  const auto words = std::make_shared<std::vector<std::uint64_t>>((samples.size() + 63) / 64);
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i]) (*words)[i / 64] |= std::uint64_t{1} << (i % 64);
  return StartTable::of_bits(lengths, *words, words);
}

StartTable of_numbers(const Dims& lengths, const std::vector<bool>& samples) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = samples.size(); i-- > 0;)
    if (samples[i]) numbers.insert(numbers.end(), 1 + i % 2, static_cast<std::int64_t>(i));
  return StartTable::of_numbers(lengths, numbers);
}

/// The group of each start along a dimension; -1: none.
std::vector<std::int64_t> groups(const StartTable& table, std::size_t dim, std::int64_t length) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(length), -1);
  for (const StartTable::Starts& each : table.starts(dim))
    for (std::int64_t i = each.first; i < each.end; ++i)
      result[static_cast<std::size_t>(i)] = each.group;
  return result;
}

/// The choices of starts that are samples, by mark().
std::set<Choice> choices(const StartTable& table, const Dims& lengths) {
  std::vector<std::vector<GroupRange>> ranges;
  std::size_t size = 1;
  for (std::size_t d = 0; d < table.dims(); ++d) {
    ranges.push_back({{0, table.groups(d)}});
    size *= static_cast<std::size_t>(table.groups(d));
  }
  std::vector<std::uint8_t> marks(size);
  table.mark(ranges, marks.data());
  std::set<Choice> result;
  const auto visit = [&](auto&& self, std::size_t d, std::size_t at, Choice choice) -> void {
    if (d == table.dims()) {
      if (marks[at] != 0) result.insert(choice);
      return;
    }
    const std::vector<std::int64_t> of = groups(table, d, lengths[d]);
    choice.push_back(0);
    for (std::size_t i = 0; i < of.size(); ++i) {
      choice.back() = static_cast<std::int64_t>(i);
      if (of[i] >= 0)
        self(self, d + 1,
             at * static_cast<std::size_t>(table.groups(d)) + static_cast<std::size_t>(of[i]),
             choice);
    }
  };
  visit(visit, 0, 0, {});
  return result;
}

TEST(StartTable, StartsWithTheSameSamplesAreOneGroup) {
  // 3 times that are alike, one without samples, another one; rows of 2 x 70, beyond a word.
  std::vector<bool> samples;
  for (const int time : {0, 0, 0, 1, 2})
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 70; ++x)
        samples.push_back(time == 0 ? (x < 3 || x > 66) == (y == 0) : time == 2 && x == 5);
  const Dims lengths{5, 2, 70};
  for (const StartTable& table : {of_bits(lengths, samples), of_numbers(lengths, samples)}) {
    EXPECT_THAT(groups(table, 0, 5), ElementsAre(0, 0, 0, -1, 1));
    EXPECT_THAT(groups(table, 1, 2), ElementsAre(0, 1));
    EXPECT_EQ(table.groups(2), 5);  // 0 to 2, 3 and 4, 5, 6 to 66, 67 to 69
    EXPECT_FALSE(table.is_free(0));
    EXPECT_FALSE(table.is_product());
    const StartTable columns = table.along({2});
    EXPECT_TRUE(columns.is_free(0) && columns.is_product());
  }
}

TEST(StartTable, AFreeDimensionIsOneGroup) {
  const std::vector<bool> samples{true, false, false, true, true, false, false, true};
  const StartTable table = of_bits({2, 2, 2}, samples);
  EXPECT_TRUE(table.is_free(0));
  EXPECT_FALSE(table.is_free(1) || table.is_free(2) || table.is_product());
  EXPECT_FALSE(table.along({2, 1}).is_product());
  EXPECT_TRUE(table.along({0, 2}).is_product());
  const StartTable whole = StartTable::whole({4, 7});
  EXPECT_TRUE(whole.is_product() && whole.is_free(0) && whole.along({1}).is_free(0));
}

TEST(StartTable, RandomSamplesAndTheirProjections) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    Dims lengths;
    for (int d = 0; d < 3; ++d) lengths.push_back(1 + static_cast<std::int64_t>(random() % 6));
    std::vector<bool> samples(static_cast<std::size_t>(element_count(lengths)));
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i] = random() % 100 < (round % 2 ? 90 : 15);
    samples[0] = true;
    std::set<Choice> expected;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto n = static_cast<std::int64_t>(i);
      if (samples[i])
        expected.insert({n / lengths[2] / lengths[1], n / lengths[2] % lengths[1], n % lengths[2]});
    }
    for (const StartTable& table : {of_bits(lengths, samples), of_numbers(lengths, samples)}) {
      EXPECT_EQ(choices(table, lengths), expected);
      for (const std::vector<std::size_t>& dims :
           {std::vector<std::size_t>{0}, {2}, {0, 1}, {2, 0}, {2, 1, 0}}) {
        std::set<Choice> projected;
        Dims own;
        for (const std::size_t d : dims) own.push_back(lengths[d]);
        for (const Choice& choice : expected) {
          Choice some;
          for (const std::size_t d : dims) some.push_back(choice[d]);
          projected.insert(some);
        }
        EXPECT_EQ(choices(table.along(dims), own), projected);
      }
    }
  }
}

TEST(StartTable, MarksSomeOfTheGroups) {
  std::vector<bool> samples(36);
  for (std::size_t i = 0; i < 36; i += 7) samples[i] = true;  // the diagonal
  for (const StartTable& table : {of_bits({6, 6}, samples), of_numbers({6, 6}, samples)}) {
    std::vector<std::uint8_t> marks(3 * 4);
    table.mark({{{0, 1}, {3, 5}}, {{2, 6}}}, marks.data());
    EXPECT_THAT(marks, ElementsAre(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0));
  }
}

}  // namespace start_table_test
}  // namespace batchfs
