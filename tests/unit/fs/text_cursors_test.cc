#include "fs/text_cursors.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace text_cursors_test {

/// Pieces of 64 KiB without an end.
struct Endless final : TextSource {
  std::string next() override { return std::string(64 << 10, 'x'); }
  std::unique_ptr<TextSource> fork() const override {
    ++*forks;
    return std::make_unique<Endless>(*this);
  }
  explicit Endless(int* counter) : forks(counter) {}
  int* forks;
};

struct TextCursorsTest : testing::Test {
  TextCursors::Cursor at(std::uint64_t offset) {
    return {std::make_unique<Endless>(&forks), "", offset, false};
  }
  /// Leaves marks as a reader does that goes through so many bytes.
  void pass(const void* owner, std::uint64_t bytes) {
    TextCursors::Cursor cursor = at(0);
    while (cursor.end() < bytes) {
      cursor.begin = cursor.end();
      cursor.piece = cursor.source->next();
      cursors.mark(owner, cursor);
    }
  }
  TextCursors cursors;
  int forks = 0;
  const int one = 0, other = 0;
};

TEST_F(TextCursorsTest, TakesTheNearestBefore) {
  for (const std::uint64_t offset : {100u, 300u, 200u}) cursors.put(&one, at(offset));
  EXPECT_EQ(cursors.take(&other, 1000).source, nullptr);
  EXPECT_EQ(cursors.take(&one, 99).source, nullptr);
  EXPECT_EQ(cursors.take(&one, 250).begin, 200u);
  EXPECT_EQ(cursors.take(&one, 250).begin, 100u);
  EXPECT_EQ(cursors.take(&one, 250).source, nullptr);
  EXPECT_EQ(cursors.take(&one, 300).begin, 300u);
}

TEST_F(TextCursorsTest, MarksAreUsedAgainAndAgain) {
  pass(&one, 10 << 20);
  EXPECT_EQ(cursors.take(&one, TextCursors::kFirstDistance - 1).source, nullptr);
  for (int i = 0; i < 3; ++i)
    for (const std::uint64_t offset : {1u << 20, 7u << 20, (5u << 20) + 77}) {
      const TextCursors::Cursor cursor = cursors.take(&one, offset);
      ASSERT_NE(cursor.source, nullptr);
      EXPECT_LE(cursor.begin, offset);
      EXPECT_LT(offset - cursor.begin, TextCursors::kFirstDistance);
    }
  // A cursor that is nearer is taken.
  cursors.put(&one, at((7 << 20) + 5));
  EXPECT_EQ(cursors.take(&one, (7 << 20) + 6).begin, (7u << 20) + 5);
}

TEST_F(TextCursorsTest, MarksOfALongTextAreFewAndEvenlySpread) {
  constexpr std::uint64_t kLength = 1 << 30;
  pass(&one, kLength);
  EXPECT_LE(forks, 10 * static_cast<int>(TextCursors::kMaxMarks));
  std::uint64_t marks = 0;
  for (std::uint64_t offset = kLength; offset > 0; ++marks) {
    const TextCursors::Cursor cursor = cursors.take(&one, offset);
    EXPECT_LE(offset - cursor.begin, kLength / 16);
    offset = cursor.begin == 0 ? 0 : cursor.begin - 1;
  }
  EXPECT_LE(marks, TextCursors::kMaxMarks + 1);
}

TEST_F(TextCursorsTest, MarksOfAFewTextsAreKept) {
  std::vector<int> owners(2 * TextCursors::kMax);
  for (const int& owner : owners) pass(&owner, 1 << 20);
  EXPECT_EQ(cursors.take(&owners.front(), 1 << 20).source, nullptr);
  EXPECT_NE(cursors.take(&owners.back(), 1 << 20).source, nullptr);
  cursors.drop(&owners.back());
  EXPECT_EQ(cursors.take(&owners.back(), 1 << 20).source, nullptr);
  EXPECT_NE(cursors.take(&owners.end()[-2], 1 << 20).source, nullptr);
  cursors.clear();
  EXPECT_EQ(cursors.take(&owners.end()[-2], 1 << 20).source, nullptr);
}

}  // namespace text_cursors_test
}  // namespace batchfs
