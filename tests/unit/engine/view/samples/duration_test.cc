#include "engine/view/samples/duration.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace duration_test {

using testing::HasSubstr;

constexpr std::int64_t kHour = 3'600'000'000'000;

TEST(Duration, IsANumberAndAUnit) {
  EXPECT_EQ(parse_duration("6h"), (Duration{.nanoseconds = 6 * kHour}));
  EXPECT_EQ(parse_duration("-12h"), (Duration{.nanoseconds = -12 * kHour}));
  EXPECT_EQ(parse_duration("+1d"), (Duration{.nanoseconds = 24 * kHour}));
  EXPECT_EQ(parse_duration("2D"), (Duration{.nanoseconds = 48 * kHour}));
  EXPECT_EQ(parse_duration("1w"), (Duration{.nanoseconds = 168 * kHour}));
  EXPECT_EQ(parse_duration("90min"), parse_duration("90m"));
  EXPECT_EQ(parse_duration("1s"), parse_duration("1000ms"));
  EXPECT_EQ(parse_duration("3us"), parse_duration("3000ns"));
  EXPECT_EQ(parse_duration("-1mo"), (Duration{.months = -1}));
  EXPECT_EQ(parse_duration("2y"), (Duration{.months = 24}));
  EXPECT_TRUE(parse_duration("0h")->is_zero());
}

TEST(Duration, OtherTextsAreNone) {
  for (const char* text : {"", "6", "h", "6 h", "6x", "1M", "6hours", "1.5h", "--6h", "+-6h", "6h6",
                           "99999999999999999999h", "9223372036854775807h", "1000000y"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Duration, IsWrittenInTheLargestUnit) {
  for (const char* text :
       {"6h", "-6h", "1d", "7d", "1mo", "1y", "18mo", "-1y", "90min", "1s", "250ms", "1ns"})
    EXPECT_EQ(duration_text(*parse_duration(text)), text);
  EXPECT_EQ(duration_text(*parse_duration("24h")), "1d");
  EXPECT_EQ(duration_text(*parse_duration("12mo")), "1y");
  EXPECT_EQ(duration_text(Duration{}), "0h");
}

TEST(Duration, AMistakeNamesItsPlace) {
  const Json number = 6, text = "6q";
  EXPECT_THAT(error_of([&] {
                read_duration({number, "a.b"});
              }).why(),
              HasSubstr("a.b: expected a length of time"));
  EXPECT_THAT(error_of([&] {
                read_duration({text, "a.b"});
              }).why(),
              HasSubstr("a.b: '6q' is not a length of time; write 6h"));
}

}  // namespace duration_test
}  // namespace batchfs
