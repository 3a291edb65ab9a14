#include "engine/base/json_mistake.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace batchfs {
namespace json_mistake_test {

std::string mistake_in(std::string_view text) {
  const auto mistake = find_json_mistake(text);
  return mistake ? describe_json_mistake(text, *mistake) : "none";
}

TEST(JsonMistake, NamesWhatPeopleWriteFromHabit) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"a\": 1\n \"b\": 2}", "line 2, column 2: a comma is missing before this: `^\"b\": 2}`"},
      {"{\"a\": [1 2]}", "line 1, column 10: a comma is missing before this: `{\"a\": [1 ^2]}`"},
      {"{\"a\": 1,}", "line 1, column 8: there must be no comma before '}': `{\"a\": 1^,}`"},
      {"{\"a\": [1,\n]}", "line 1, column 9: there must be no comma before ']': `{\"a\": [1^,`"},
      {"{\"a\": 1, // size\n\"b\": 2}",
       "line 1, column 10: JSON has no comments: `{\"a\": 1, ^// size`"},
      {"{\"a\": 1 /* size */}", "line 1, column 9: JSON has no comments: `{\"a\": 1 ^/* size */}`"},
      {"# view\n{}", "line 1, column 1: JSON has no comments with '#': `^# view`"},
      {"{} // end", "line 1, column 4: JSON has no comments: `{} ^// end`"},
      {"{\"a\": True}", "line 1, column 7: JSON writes true: `{\"a\": ^True}`"},
      {"{\"a\": False}", "line 1, column 7: JSON writes false: `{\"a\": ^False}`"},
      {"{\"a\": None}", "line 1, column 7: JSON writes null: `{\"a\": ^None}`"},
      {"{\"a\": NaN}", "line 1, column 7: JSON has no NaN: `{\"a\": ^NaN}`"},
      {"{\"a\": -Infinity}", "line 1, column 7: JSON has no Infinity: `{\"a\": ^-Infinity}`"},
      {"{'a': 1}", "line 1, column 2: JSON wants double quotes: `{^'a': 1}`"},
      {"{\"a\": 'x'}", "line 1, column 7: JSON wants double quotes: `{\"a\": ^'x'}`"},
      {"{\xe2\x80\x9c"
       "a\xe2\x80\x9d: 1}",
       "line 1, column 2: JSON wants straight double quotes: `{^\xe2\x80\x9c"
       "a\xe2\x80\x9d: 1}`"},
      {"{a: 1}", "line 1, column 2: strings and keys stand in double quotes: `{^a: 1}`"},
      {"{\"a\": global}",
       "line 1, column 7: strings and keys stand in double quotes: `{\"a\": ^global}`"},
      {"{\"a\" 1}", "line 1, column 6: a ':' is missing after the key \"a\": `{\"a\" ^1}`"},
      {"{\"a\" = 1}", "line 1, column 6: a ':' stands between a key and its value: `{\"a\" ^= 1}`"},
      {"{\"a\"}", "line 1, column 5: a ':' is missing after the key \"a\": `{\"a\"^}`"},
      {"[\"a\": 1]", "line 1, column 5: a list has no keys; write {...}: `[\"a\"^: 1]`"},
      {"{\"a\": \"x\n}", "line 1, column 7: this string is not closed on its line: `{\"a\": ^\"x`"},
      {"{\"a\": \"C:\\data\"}",
       "line 1, column 10: a backslash in a string is written \\\\: `{\"a\": \"C:^\\data\"}`"},
      {"{\"a\": .5}",
       "line 1, column 7: this is not a number in JSON: no leading zero or '+', digits on both "
       "sides of the point: `{\"a\": ^.5}`"},
      {"{\"a\": [1, 2}", "line 1, column 12: '}' closes a '[': `{\"a\": [1, 2^}`"},
      {"{\n\"a\": [1, 2]\n",
       "line 2, column 12: the '{' of line 1 is not closed: `\"a\": [1, 2]^`"},
      {"", "line 1, column 1: the file is empty: `^`"},
      {" \n ", "line 1, column 1: there is nothing but spaces: `^ `"},
      {"{}{}", "line 1, column 3: the JSON has ended before this: `{}^{}`"},
  };
  for (const auto& [text, says] : cases) EXPECT_EQ(mistake_in(text), says) << text;
}

TEST(JsonMistake, LongLinesAreCutBetweenCharacters) {
  std::string text = "{\"k\": \"";
  for (int i = 0; i < 100; ++i) text += "\xc3\xa4";
  text += "\" \"b\": \"";
  for (int i = 0; i < 100; ++i) text += "\xc3\xb6";
  text += "\"}";
  const std::string says = mistake_in(text);
  EXPECT_NE(says.find("column 210: a comma is missing before this: `...\xc3\xa4"),
            std::string::npos)
      << says;
  EXPECT_TRUE(says.ends_with("\xc3\xb6...`")) << says;
}

TEST(JsonMistake, NothingInItControlsATerminal) {
  EXPECT_EQ(mistake_in("{\x1b[31m"),
            "line 1, column 2: a key in double quotes is expected here: `{^ [31m`");
  EXPECT_EQ(mistake_in("{\xff\xfe"),
            "line 1, column 2: strings and keys stand in double quotes: `{^??`");
}

// Changed, cut and valid texts: there is a mistake exactly where nlohmann's parser refuses the
// text.
TEST(JsonMistake, AgreesWithTheParser) {
  const std::string good =
      R"({"a": [1, -2.5e+3, 0, "x\u00e9\n"], "b": {}, "c": {"d": [true, false, null, []]}})";
  const std::string alphabet = "{}[]:,\"'\\ \n\t0159.-+eEtfnu#/aT";
  unsigned state = 7;
  const auto random = [&](std::size_t below) {
    return (state = state * 1103515245 + 12345) / 65536 % below;
  };
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (std::size_t n = random(3); n > 0; --n) {
      const std::size_t at = random(text.size());
      switch (random(3)) {
        case 0:
          text[at] = alphabet[random(alphabet.size())];
          break;
        case 1:
          text.erase(at, 1);
          break;
        default:
          text.insert(at, 1, alphabet[random(alphabet.size())]);
      }
    }
    EXPECT_EQ(!find_json_mistake(text), nlohmann::json::accept(text)) << text;
  }
}

}  // namespace json_mistake_test
}  // namespace batchfs
