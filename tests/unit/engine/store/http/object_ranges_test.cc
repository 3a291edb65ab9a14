#include "engine/store/http/object_ranges.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace object_ranges_test {

constexpr std::uint64_t kMega = 1 << 20;

TEST(ObjectRanges, ARequestCoversWhatLiesInIt) {
  EXPECT_TRUE(covers({}, {5, 3}));
  EXPECT_TRUE(covers({}, {0, 3, true}));
  EXPECT_TRUE(covers({2, 8}, {2, 8}));
  EXPECT_TRUE(covers({2, 8}, {4, 6}));
  EXPECT_FALSE(covers({2, 8}, {4, 7}));
  EXPECT_FALSE(covers({2, 8}, {1, 2}));
  EXPECT_TRUE(covers({0, 9, true}, {0, 8, true}));
  EXPECT_FALSE(covers({0, 8, true}, {0, 9, true}));
  EXPECT_FALSE(covers({0, 8, true}, {0, 1}));
  EXPECT_TRUE(covers({2, UINT64_MAX}, {7, UINT64_MAX}));
}

TEST(ObjectRanges, NearRangesBecomeOne) {
  ByteRange range{1000, 500};
  std::uint64_t wanted = 500;
  EXPECT_TRUE(widen(range, wanted, {1600, 400}));
  EXPECT_EQ(range.offset, 1000u);
  EXPECT_EQ(range.length, 1000u);
  EXPECT_EQ(wanted, 900u);
  EXPECT_TRUE(widen(range, wanted, {900, 50}));
  EXPECT_EQ(range.offset, 900u);
  EXPECT_EQ(range.length, 1100u);
}

TEST(ObjectRanges, FarAndLargeRangesDoNot) {
  const auto widens = [](ByteRange range, const ByteRange& other) {
    std::uint64_t wanted = range.length;
    return widen(range, wanted, other);
  };
  EXPECT_FALSE(widens({0, kMega}, {2 * kMega, kMega})) << "the gap";
  EXPECT_FALSE(widens({0, 100}, {1000, 100})) << "more that nobody wants than that somebody does";
  EXPECT_FALSE(widens({0, 7 * kMega}, {7 * kMega, 2 * kMega})) << "together";
  EXPECT_FALSE(widens({0, kMega}, {kMega, kMaxSharedRange}));
  EXPECT_FALSE(widens({0, 8, true}, {0, 8}));
  EXPECT_FALSE(widens({0, 8}, {0, 8, true}));
}

TEST(ObjectRanges, EachGetsItsPart) {
  using Part = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(slice({100, 50}, {110, 20}, 50), Part(10, 20));
  EXPECT_EQ(slice({100, 50}, {140, 20}, 50), Part(40, 10));
  EXPECT_EQ(slice({100, 50}, {140, 20}, 30), Part(30, 0)) << "the object ended";
  EXPECT_EQ(slice({}, {0, 7, true}, 20), Part(13, 7));
  EXPECT_EQ(slice({0, 9, true}, {0, 7, true}, 5), Part(0, 5));
}

}  // namespace object_ranges_test
}  // namespace batchfs
