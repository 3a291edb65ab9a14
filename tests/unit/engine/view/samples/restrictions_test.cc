#include "engine/view/samples/restrictions.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace restrictions_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// Labels 0 to 54 hours, every 6, without 24 and 30; windows of time and x.
struct RestrictionsTest : testing::Test {
  RestrictionsTest() {
    data.declare("v", "<f4", {"time", "x"}, {8, 3}, {4, 3})
        .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 36, 42, 48, 54},
                             {{"units", "hours since 2000-01-01"}});
    dataset = data.dataset();
  }
  std::shared_ptr<const View> view(const std::string& samples, const std::string& time) const {
    return parse_view(dataset, R"({"window": {"time": )" + time + R"(, "x": 1}, "batch": 100)" +
                                   (samples.empty() ? "" : R"(, "samples": )" + samples) + "}");
  }
  std::vector<std::int64_t> starts(const View& view) const {
    std::vector<std::int64_t> times;
    for (const Dims& start : view.window_starts(0, 0))
      if (start[1] == 0) times.push_back(start[0]);
    return times;
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

constexpr const char* kSpacing = R"({"spacing": {"time": "6h"}})";

TEST_F(RestrictionsTest, SpacingLeavesOutWindowsOverAGap) {
  const auto pairs = view(kSpacing, R"({"size": 2, "stride": 1})");
  EXPECT_THAT(starts(*pairs), ElementsAre(0, 1, 2, 4, 5, 6));
  EXPECT_EQ(pairs->samples(), 18);
  EXPECT_EQ(all_windows(*pairs), 21);
  EXPECT_THAT(dropped_windows(*pairs), ElementsAre(Pair("spacing", 3)));
  EXPECT_TRUE(view_warnings(*pairs).empty());
  EXPECT_THAT(starts(*view(kSpacing, "1")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(starts(*view(kSpacing, R"({"size": 3, "stride": 2})")), ElementsAre(0, 4));
}

TEST_F(RestrictionsTest, TheSeamOfACircleIsAGap) {
  const auto circle = view(kSpacing, R"({"size": 2, "stride": 1, "wrap": true})");
  EXPECT_THAT(starts(*circle), ElementsAre(0, 1, 2, 4, 5, 6));
}

TEST_F(RestrictionsTest, PaddingHasNoLabels) {
  const auto padded = view(kSpacing, R"({"size": 3, "stride": 2, "edge": "pad"})");
  EXPECT_THAT(starts(*padded), ElementsAre(0, 4, 6));
}

TEST_F(RestrictionsTest, WithoutSpacingAWarning) {
  const auto pairs = view("", R"({"size": 2, "stride": 1})");
  EXPECT_EQ(pairs->samples(), 21);
  EXPECT_TRUE(dropped_windows(*pairs).empty());
  EXPECT_THAT(view_warnings(*pairs),
              ElementsAre(HasSubstr("time: 1 gap: 3 samples reach across one; \"samples\"")));
}

TEST_F(RestrictionsTest, OfNothingNamesTheRestriction) {
  const Error error =
      error_of([&] { view(R"({"spacing": {"time": "3h"}})", R"({"size": 2, "stride": 1})"); });
  EXPECT_THAT(error.why(), HasSubstr("samples.spacing.time: no sample is left: of 7 windows"));
  EXPECT_THAT(error.why(), HasSubstr("2000-01-01T00:00:00 and 2000-01-01T06:00:00"));
}

TEST_F(RestrictionsTest, ADimensionThatIsTooLongIsRefused) {
  const auto endless =
      MemoryData().declare("v", "<f4", {"x"}, {INT64_C(1) << 40}, {1 << 20}).dataset();
  const Error error = error_of(
      [&] { parse_view(endless, R"({"window": {"x": 1}, "samples": {"where": {"x": ["#1"]}}})"); });
  EXPECT_THAT(error.why(), HasSubstr("samples.where.x: 'x' has 1099511627776 positions"));
}

TEST_F(RestrictionsTest, ABillionSamplesNeedNoMemoryOfTheirOwn) {
  MemoryData big;
  std::vector<std::int32_t> times;
  for (std::int32_t i = 0; i < 100'000; ++i) times.push_back(6 * (i + i / 1000));
  big.declare("v", "<f4", {"time", "y", "x"}, {100'000, 100, 100}, {10, 100, 100})
      .index("time", "<i4", times, {{"units", "hours since 1900-01-01"}});
  const auto view =
      parse_view(big.dataset(), R"({"window": {"time": {"size": 4, "stride": 1}, "y": 1, "x": 1},
                         "samples": {"spacing": {"time": "6h"}}, "order": {"shuffle": "global"}})");
  EXPECT_EQ(view->samples(), (99'997 - 99 * 3) * INT64_C(10'000));
  const Dims start = view->window_starts(0, 123'456'789).at(0);
  EXPECT_LT(start[0] % 1000, 997);
}

}  // namespace restrictions_test
}  // namespace batchfs
