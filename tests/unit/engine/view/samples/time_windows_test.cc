#include "engine/view/samples/time_windows.h"

#include <gmock/gmock.h>

#include "engine/view/describe/resolved.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace time_windows_test {

using testing::HasSubstr;

struct TimeWindowsTest : testing::Test {
  std::shared_ptr<const View> view(const std::vector<std::int32_t>& hours,
                                   const std::string& rest) const {
    const auto length = static_cast<std::int64_t>(hours.size());
    return parse_view(MemoryData()
                          .declare("v", "<f4", {"time"}, {length}, {4})
                          .index("time", "<i4", hours, {{"units", "hours since 2000-01-01"}})
                          .dataset(),
                      "{" + rest + "}");
  }
  std::string refusal(const std::vector<std::int32_t>& hours, const std::string& rest) const {
    return error_of([&] { view(hours, rest); }).why();
  }
  const std::vector<std::int32_t> regular{0, 6, 12, 18, 24, 30, 36, 42}, gap{0, 6, 12, 24, 30, 36};
};

TEST_F(TimeWindowsTest, SizesAndStridesInPositions) {
  const auto v = view(regular, R"("window": {"time": {"size": "1d", "stride": "12h"}})");
  EXPECT_EQ(resolved_view(*v)["window"]["time"]["size"], 4);
  EXPECT_EQ(resolved_view(*v)["window"]["time"]["stride"], 2);
  EXPECT_EQ(v->samples(), 3);
  EXPECT_EQ(view(regular, R"("window": {"time": "12h"})")->samples(), 4);
  EXPECT_EQ(view({18, 12, 6, 0}, R"("window": {"time": "12h"})")->samples(), 2);
  EXPECT_EQ(view(gap, R"("window": {"time": {"size": "12h", "stride": 1}},
                         "samples": {"spacing": {"time": "6h"}})")
                ->samples(),
            4);
}

TEST_F(TimeWindowsTest, EveryIsResolvedToAViewThatIsReadAgain) {
  const auto v =
      view(gap, R"("window": {"time": {"size": "12h", "every": "12h", "origin": "first"}},
                              "variables": ["v"], "samples": {"spacing": {"time": "6h"}})");
  const Json resolved = resolved_view(*v);
  EXPECT_EQ(resolved["window"]["time"],
            Json::parse(R"({"size": 2, "every": "12h", "origin": "first", "wrap": false,
                            "edge": "drop"})"));
  EXPECT_EQ(v->samples(), 2);
  const std::string text = resolved.dump();
  EXPECT_EQ(resolved_view(*view(gap, text.substr(1, text.size() - 2))), resolved);
  EXPECT_EQ(with_order(*v, {.shuffle = Order::Shuffle::global})->samples(), 2);
}

TEST_F(TimeWindowsTest, ADurationNeedsAStepThatDividesIt) {
  EXPECT_THAT(refusal(regular, R"("window": {"time": "9h"})"),
              HasSubstr("window.time: '9h' is not a multiple of 6h, the step of 'time'"));
  EXPECT_THAT(refusal(gap, R"("window": {"time": {"size": 1, "stride": "12h"}})"),
              HasSubstr("window.time.stride: '12h' needs labels that are one step apart, and after "
                        "2000-01-01T12:00:00 'time' continues with 2000-01-02T00:00:00"));
  EXPECT_THAT(refusal({0, 1}, R"("window": {"time": {"size": "290y", "stride": 1, "edge": "pad"}},
                                 "samples": {"spacing": {"time": "1y"}})"),
              HasSubstr("no sample is left"));
  EXPECT_THAT(refusal({0, 1}, R"("window": {"time": {"size": "100000h", "edge": "pad"}},
                                 "samples": {"spacing": {"time": "1us"}})"),
              HasSubstr("window.time.size: '100000h' is 360000000000000 positions; the most is"));
  EXPECT_THAT(refusal({0}, R"("window": {"time": "6h"})"), HasSubstr("fewer than two labels"));
}

TEST_F(TimeWindowsTest, OffsetsByLabel) {
  const auto v = view(gap, R"("window": {"time": 1}, "batch": 9,
      "tensors": {"x": {"variables": ["v"], "offsets": {"time": ["-6h", "0h"]}}})");
  EXPECT_EQ(v->samples(), 4);
  EXPECT_EQ(assembled(*v, 0, 0).at(0), (std::vector<std::int64_t>{0, 1, 1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(dropped_windows(*v), (Dropped{{"offsets", 2}}));
  EXPECT_TRUE(view_warnings(*v).empty());  // nothing is shifted
  EXPECT_THAT(refusal({0, 6, 6, 12}, R"("window": {"time": 1},
      "tensors": {"x": {"variables": ["v"], "offsets": {"time": ["6h"]}}})"),
              HasSubstr("tensors.x.offsets.time: lengths of time need labels in order"));
}

TEST_F(TimeWindowsTest, ReserveCountsAsOffsets) {
  const char* const tensors =
      R"(, "tensors": {"x": {"variables": ["v"], "offsets": {"time": [1]}}})";
  EXPECT_EQ(
      view(regular, std::string(R"("window": {"time": 1}, "reserve": {"time": [-1, 3]})") + tensors)
          ->samples(),
      4);
  const auto v =
      view(gap, R"("window": {"time": 1}, "reserve": {"time": ["-6h", "6h"]}, "batch": 9)");
  EXPECT_EQ(dropped_windows(*v), (Dropped{{"reserve", 4}}));
  EXPECT_EQ(assembled(*v, 0, 0).at(0), (std::vector<std::int64_t>{1, 4}));
  EXPECT_THAT(refusal(gap, R"("window": {"time": 1}, "reserve": {"x": [1]})"),
              HasSubstr("reserve.x: 'x' is not a dimension of \"window\""));
}

}  // namespace time_windows_test
}  // namespace batchfs
