#include "engine/base/braces.h"

#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace braces_test {

using testing::ElementsAre;

std::vector<std::string> texts(std::string_view text, std::size_t most = 100) {
  std::vector<std::string> result;
  for (const ExpandedText& each : expand_braces(text, most)) result.push_back(each.text);
  return result;
}
std::vector<std::string> keys(std::string_view text) {
  std::vector<std::string> result;
  for (const ExpandedText& each : expand_braces(text, 100)) result.push_back(each.key);
  return result;
}

TEST(Braces, AreRangesAndListsAsInShells) {
  EXPECT_THAT(texts("y{1979..1981}.zarr"), ElementsAre("y1979.zarr", "y1980.zarr", "y1981.zarr"));
  EXPECT_THAT(texts("{08..11}"), ElementsAre("08", "09", "10", "11"));
  EXPECT_THAT(texts("{3..1}"), ElementsAre("3", "2", "1"));
  EXPECT_THAT(texts("{1980..2001..10}"), ElementsAre("1980", "1990", "2000"));
  EXPECT_THAT(texts("{-1..1}"), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(texts("a{x,y}/{1..2}"), ElementsAre("ax/1", "ax/2", "ay/1", "ay/2"));
  EXPECT_THAT(keys("a{x,y}/{1..2}b"), ElementsAre("x-1", "x-2", "y-1", "y-2"));
  EXPECT_THAT(keys("y{5..6}"), ElementsAre("5", "6"));
}

TEST(Braces, OthersStayAsTheyAre) {
  for (const char* text : {"", "plain", "{}", "{a}", "a{b", "}{", "{1..}", "{1..2..0}", "{a..c}",
                           "{99999999999999999999..2}"}) {
    EXPECT_THAT(texts(text), ElementsAre(text));
    EXPECT_THAT(keys(text), ElementsAre(""));
  }
  EXPECT_THAT(texts("{}/{1..2}"), ElementsAre("{}/1", "{}/2"));
}

TEST(Braces, StandForAsManyTextsAsAreAllowed) {
  EXPECT_EQ(texts("{1..10}{1..10}").size(), 100U);
  EXPECT_THROW(texts("{1..10}{1..11}"), Error);
  EXPECT_THROW(texts("{1..900000000000000}"), Error);
}

}  // namespace braces_test
}  // namespace batchfs
