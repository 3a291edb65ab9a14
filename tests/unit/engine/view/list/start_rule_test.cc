#include "engine/view/list/start_rule.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace start_rule_test {

using testing::HasSubstr;

/// Positions at which a row's window begins, by counting: every element that it needs lies inside.
std::vector<std::int64_t> starts_by_counting(const WindowDim& window, std::int64_t length,
                                             std::pair<std::int64_t, std::int64_t> offsets,
                                             bool center) {
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < length; ++row) {
    std::int64_t start = center ? row - window.size / 2 : row;
    bool fits = true;
    if (window.wrap) {
      start = (start % length + length) % length;
    } else {
      fits = start >= 0;
      for (std::int64_t o = offsets.first; o <= offsets.second; ++o)
        for (std::int64_t i = 0; i < (window.padded ? 1 : window.size); ++i)
          fits = fits && start + o + i >= 0 && start + o + i < length;
    }
    starts.push_back(fits ? start : -1);
  }
  return starts;
}

TEST(StartRule, WindowsFitWithAllTheirOffsets) {
  for (const bool wrap : {false, true})
    for (const bool padded : {false, true})
      for (const bool center : {false, true})
        for (const std::int64_t size : {1, 2, 5, 8})
          for (const auto& offsets :
               {std::pair<std::int64_t, std::int64_t>{0, 0}, {-1, 0}, {-2, 3}}) {
            if (wrap && padded) continue;
            const WindowDim window{"time", size, wrap, padded};
            const StartRule rule(window, 8, offsets, {}, center);
            const auto expected = starts_by_counting(window, 8, offsets, center);
            for (std::int64_t row = 0; row < 8; ++row)
              EXPECT_EQ(rule.start(row), expected[static_cast<std::size_t>(row)])
                  << wrap << padded << center << " " << size << " " << offsets.first << " " << row;
            EXPECT_EQ(rule.start(-1), -1);
            EXPECT_EQ(rule.start(8), -1);
          }
}

TEST(StartRule, WindowsThatAnotherSourceLacksAreNone) {
  std::vector<bool> missing(10);
  missing[4] = true;
  Reach reach;
  reach.lacking.push_back(
      {"sources.b.join", "b", {0, 2}, std::make_shared<MarkedCounts>(missing, false)});
  const StartRule rule({"time", 2, false}, 10, {0, 0}, reach, false);
  for (std::int64_t start = 0; start < 9; ++start) {
    const bool touches = start == 3 || start == 4 || start == 1 || start == 2;
    EXPECT_EQ(rule.start(start), touches ? -1 : start);
  }
  EXPECT_THAT(rule.why(3), HasSubstr("another source lacks"));
}

TEST(StartRule, SaysWhatAWindowNeeds) {
  const StartRule rule({"lat", 4, false}, 10, {-1, 2}, {}, false);
  EXPECT_THAT(rule.why(12), HasSubstr("'lat' has no position 12: the selection has 10"));
  EXPECT_THAT(rule.why(7), HasSubstr("needs the positions 6 to 12, and the selection has 10"));
  EXPECT_THAT(rule.why(7), HasSubstr("\"edge\": \"pad\""));
  EXPECT_THAT(rule.why(0), HasSubstr("needs the positions -1 to 5"));
}

}  // namespace start_rule_test
}  // namespace batchfs
