#include "engine/codec/blosc_blocks.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace blosc_blocks_test {

BloscBlocks blocks(const std::vector<std::uint32_t>& starts, std::uint64_t size) {
  return {std::as_bytes(std::span(starts)), size};
}

TEST(BloscBlocks, EndWhereTheNextOneInTheFileBegins) {
  const BloscBlocks ordered = blocks({28, 50, 90}, 120);
  EXPECT_EQ(ordered.count(), 3);
  EXPECT_EQ(ordered.start(1), 50);
  EXPECT_EQ(ordered.end(0), 50);
  EXPECT_EQ(ordered.end(1), 90);
  EXPECT_EQ(ordered.end(2), 120);
  const BloscBlocks any = blocks({90, 28, 50}, 120);
  EXPECT_EQ(any.start(0), 90);
  EXPECT_EQ(any.end(0), 120);
  EXPECT_EQ(any.end(1), 50);
  EXPECT_EQ(any.end(2), 90);
}

TEST(BloscBlocks, OneAndTheSameEndTogether) {
  const BloscBlocks same = blocks({28, 28, 60, 28}, 120);
  EXPECT_EQ(same.end(0), 60);
  EXPECT_EQ(same.end(1), 60);
  EXPECT_EQ(same.end(3), 60);
}

TEST(BloscBlocks, StartsMayBeAnything) {
  const BloscBlocks odd = blocks({0xffffffff, 0, 121}, 120);
  EXPECT_EQ(odd.start(0), 0xffffffff);
  EXPECT_EQ(odd.end(0), 120);
  EXPECT_EQ(odd.end(1), 120);
  EXPECT_EQ(odd.end(2), 120);
  EXPECT_EQ(blocks({}, 16).count(), 0);
}

TEST(BloscBlocks, LargeBlocksOfSmallItemsAreSplitByBytes) {  // c-blosc 1.21, blosc.c, split_block
  EXPECT_EQ(blosc_streams(0x21, 4, 512), 4u);
  EXPECT_EQ(blosc_streams(0x21, 4, 511), 1u);
  EXPECT_EQ(blosc_streams(0x31, 4, 512), 1u);  // the flag marks it as not split
  EXPECT_EQ(blosc_streams(0x21, 16, 1 << 20), 16u);
  EXPECT_EQ(blosc_streams(0x21, 17, 1 << 20), 1u);
  EXPECT_EQ(blosc_streams(0x21, 1, 1 << 20), 1u);
}

}  // namespace blosc_blocks_test
}  // namespace batchfs
