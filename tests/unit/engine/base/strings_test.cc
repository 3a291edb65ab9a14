#include "engine/base/strings.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace strings_test {

TEST(ParseSize, TakesPowersOf1024) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("17"), 17u);
  EXPECT_EQ(parse_size("256M"), 256u << 20);
  EXPECT_EQ(parse_size("1.5k"), 1536u);
  EXPECT_EQ(parse_size("2T"), UINT64_C(2) << 40);
  EXPECT_EQ(parse_size("4GiB"), UINT64_C(4) << 30);
}

TEST(ParseSize, RefusesWhatIsNotASize) {
  for (const char* text : {"", "M", "-1", "1X", "1 M", "nan", "1e3", "9999999999T"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(FormatSize, PicksTheUnit) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(4152960), "4.0 MB");
  EXPECT_EQ(format_size(UINT64_MAX), "16.0 EB");
}

TEST(FormatCount, GroupsDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1104504), "1,104,504");
}

TEST(ParseExactNumber, TakesOneSpellingOnly) {
  EXPECT_EQ(parse_exact_number("0"), 0u);
  EXPECT_EQ(parse_exact_number("120"), 120u);
  for (const char* text : {"", "00", "01", "+1", "-1", " 1", "1x", "99999999999999999999"})
    EXPECT_FALSE(parse_exact_number(text)) << text;
}

TEST(IsFileName, RefusesWhatAPathCouldMisread) {
  EXPECT_TRUE(is_file_name("2m_temperature"));
  EXPECT_TRUE(is_file_name("..."));
  EXPECT_TRUE(is_file_name(std::string(255, 'a')));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("a\0b", 3), std::string("a\nb"), std::string(256, 'a')})
    EXPECT_FALSE(is_file_name(name)) << name;
}

}  // namespace strings_test
}  // namespace batchfs
