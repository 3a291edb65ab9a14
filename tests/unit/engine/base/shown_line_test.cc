#include "engine/base/shown_line.h"

#include <gtest/gtest.h>

#include "engine/base/utf8.h"

namespace batchfs {
namespace shown_line_test {

TEST(ShownLine, AShortOneIsWhole) {
  EXPECT_EQ(shown_line("no such array 't'\n"), "no such array 't' ");
  EXPECT_EQ(shown_line(std::string(kMaxShownLine, 'x')), std::string(kMaxShownLine, 'x'));
}

TEST(ShownLine, ALongOneLosesItsMiddle) {
  const std::string line = shown_line("begin" + std::string(2'000'000, 'x') + "end");
  EXPECT_LE(line.size(), kMaxShownLine);
  EXPECT_GT(line.size(), kMaxShownLine / 2);
  EXPECT_TRUE(line.starts_with("beginxxx"));
  EXPECT_TRUE(line.ends_with("xxxend"));
  EXPECT_NE(line.find(" [... 199"), std::string::npos) << line;
}

TEST(ShownLine, NoCharacterIsCut) {
  for (const std::string character : {"\u00fc", "\u6e29", "\U0001f30d"})
    for (std::size_t before = 0; before < 4; ++before) {
      std::string text(before, 'x');
      for (int i = 0; i < 5000; ++i) text += character;
      const std::string line = shown_line(text);
      EXPECT_LE(line.size(), kMaxShownLine);
      for (std::size_t at = 0; at < line.size();) {  // whole characters alone
        if (static_cast<unsigned char>(line[at]) < 0x80) {
          ++at;
          continue;
        }
        EXPECT_EQ(line.substr(at, character.size()), character);
        at += character.size();
      }
    }
}

TEST(ShownLine, EscapesCount) {
  EXPECT_LE(shown_line(std::string(3000, '\x1b')).size(), kMaxShownLine);
}

}  // namespace shown_line_test
}  // namespace batchfs
