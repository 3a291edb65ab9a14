#include "engine/scan/statistics_form.h"

#include <cmath>

#include <gtest/gtest.h>

namespace batchfs {
namespace statistics_form_test {

/// One variable of two levels, selected as 500, 850, 500; two leaves.
StatisticsForm form() {
  return {{{"t", {"level"}, {2}, {{0, 1, 0}}, "time", 2, 0, 0.001}},
          {{"level", Json::array({500, 850, 500})}}};
}

StatisticsSums sums() {
  MergedMoments m, infinite;
  m.add(Moments{4, 1, 2.5, 5, 1, 4});
  infinite.add(Moments{1, 0, INFINITY, NAN, INFINITY, INFINITY});
  return {{{{0, 0, {0, 1}, {m, m}}, {1, 0, {1}, {infinite}}}, {{0, 1, {0}, {m}}}}};
}

TEST(StatisticsForm, APartKeepsEveryBit) {
  const StatisticsPart part = parse_statistics_part(statistics_part(form(), sums()), "part");
  EXPECT_EQ(part.form.variables, form().variables);
  EXPECT_EQ(part.form.coordinates, form().coordinates);
  ASSERT_EQ(part.sums.size(), 1u);
  ASSERT_EQ(part.sums[0].values.size(), 2u);
  EXPECT_EQ(part.sums[0].values[0].moments[1].moments().mean, 2.5);
  EXPECT_TRUE(std::isnan(part.sums[0].values[1].moments[0].moments().m2));
  EXPECT_EQ(part.sums[0].values[1].moments[0].moments().mean, INFINITY);
  EXPECT_EQ(part.sums[0].tendencies[0].level, 1);
}

TEST(StatisticsForm, TheResultFollowsTheSelection) {
  StatisticsMerge merge(form());
  merge.add(sums());
  const auto found = merge.result();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].values.size(), 3u);
  EXPECT_EQ(found[0].values[0].count, 4);
  EXPECT_EQ(found[0].values[1].count, 5);
  EXPECT_EQ(found[0].values[2].count, 4);
  const Json json = statistics_json(found, form().coordinates);
  EXPECT_EQ(json["t"]["coordinates"]["level"], Json::array({500, 850, 500}));
  EXPECT_EQ(json["t"]["log1p"], 0.001);
  EXPECT_EQ(json["t"]["mean"], Json::array({2.5, nullptr, 2.5}));
  EXPECT_EQ(json["t"]["tendency"]["count"], Json::array({4, 0, 4}));
}

TEST(StatisticsForm, MissingOrRepeatedSumsAreRefused) {
  StatisticsMerge merge(form());
  EXPECT_THROW(merge.result(), Error);
  merge.add(sums());
  EXPECT_THROW(merge.add(sums()), Error);
}

TEST(StatisticsForm, EveryDamagedPartIsRefusedOrRead) {
  const std::string bytes = statistics_part(form(), sums());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_statistics_part(bytes.substr(0, size), "part"), Error) << size;
  EXPECT_THROW(parse_statistics_part(bytes + "x", "part"), Error);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const char flip : {'\x01', '\x10', '\x80'}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      try {
        parse_statistics_part(damaged, "part");  // a digest detects it first
      } catch (const Error&) {
      }
    }
}

TEST(StatisticsForm, FormsThatDoNotFitAreRefused) {
  const Json good = form().json();
  EXPECT_NO_THROW(StatisticsForm::parse(JsonRef(good, "form")));
  for (const char* patch :
       {R"({"distinct": [2, 2]})", R"({"distinct": [16777217]})", R"({"ranks": [[2]]})",
        R"({"ranks": [[-2]]})", R"({"ranks": []})", R"({"leaves": 131073})", R"({"dims": []})"}) {
    Json bad = good;
    bad["variables"][0].merge_patch(Json::parse(patch));
    EXPECT_THROW(StatisticsForm::parse(JsonRef(bad, "form")), Error) << patch;
  }
}

}  // namespace statistics_form_test
}  // namespace batchfs
