#include "engine/base/json_comments.h"

#include <gmock/gmock.h>

#include "engine/base/json.h"

namespace batchfs {
namespace json_comments_test {

TEST(JsonComments, BecomeSpacesOutsideOfStrings) {
  const std::pair<const char*, const char*> cases[] = {
      {"{} // end", "{}       "},
      {"// a\r\n{}", "    \r\n{}"},
      {"{/* a\nb */\"k\": 1}", "{    \n    \"k\": 1}"},
      {R"({"//": "/* no */", "b\"//": 1})", R"({"//": "/* no */", "b\"//": 1})"},
      {"[1 /* // */, 2]", "[1         , 2]"},
      {"/**/{}", "    {}"},
      {"{\"open // \n// x\n}", "{\"open // \n    \n}"},  // the string ends with its line
      {"/", "/"},
      {"\"\\", "\"\\"},
      {"", ""},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(without_comments(text, ""), expected) << text;
}

TEST(JsonComments, OneThatIsNotClosedIsShown) {
  try {
    without_comments("{\n  /* open */ \"a\": 1 /*/\n}", "the view file 'v.json'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("line 2, column 21: this comment is not closed"));
    EXPECT_THAT(error.what(), testing::HasSubstr("the view file 'v.json'"));
  }
}

}  // namespace json_comments_test
}  // namespace batchfs
