#include "fs/ino.h"

#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace ino_test {

TEST(Ino, NumbersOfTheFirstReadingAreShownAsTheyAre) {
  for (const std::uint64_t number : {UINT64_C(1), UINT64_C(8), (UINT64_C(1) << 63) - 1})
    EXPECT_EQ(shown_number(kFirstReading, number), number);
}

TEST(Ino, CommonNumbersAreShownAsTheyAreInEveryReading) {
  for (std::uint64_t number = 1; number <= kMaxCommonIno; ++number)
    EXPECT_EQ(shown_number(77, number), number);
}

TEST(Ino, OthersAreShownAsDigestsThatDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t reading = 1; reading < 100; ++reading)
    for (const FileNumber number : {FileNumber{1} << 63, FileNumber{9} << 90, FileNumber{8}}) {
      if (reading == kFirstReading && number == 8) continue;
      const std::uint64_t shown = shown_number(reading, number);
      EXPECT_GE(shown, UINT64_C(1) << 63);
      EXPECT_EQ(shown, shown_number(reading, number));
      EXPECT_TRUE(seen.insert(shown).second);
    }
}

}  // namespace ino_test
}  // namespace batchfs
