#include "engine/base/slabs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <sys/mman.h>

#include <gtest/gtest.h>

namespace batchfs {
namespace slabs_test {

constexpr std::size_t kPage = Slabs::kPage;

/// Pages of the block that have memory.
std::size_t resident(std::byte* block, std::size_t size) {
  std::vector<unsigned char> pages(size / kPage);
  EXPECT_EQ(::mincore(block, size, pages.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

TEST(Slabs, ABlockTakesMemoryOnlyWhereItIsWritten) {
  Slabs slabs;
  std::byte* const block = slabs.take(8 * kPage);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kPage, 0u);
  EXPECT_EQ(resident(block, 8 * kPage), 0u);
  block[5 * kPage] = std::byte{1};
  EXPECT_EQ(resident(block, 8 * kPage), 1u);
  Slabs::release(block, 8 * kPage);
  EXPECT_EQ(resident(block, 8 * kPage), 0u);
  EXPECT_EQ(block[5 * kPage], std::byte{0});
}

TEST(Slabs, AHoleBetweenBlocksHasNoMemory) {
  Slabs slabs;
  std::byte* blocks[3];
  for (std::byte*& block : blocks) std::memset(block = slabs.take(4 * kPage), 1, 4 * kPage);
  Slabs::release(blocks[1], 4 * kPage);
  slabs.give(blocks[1], 4 * kPage);
  EXPECT_EQ(resident(blocks[1], 4 * kPage), 0u);
  EXPECT_EQ(resident(blocks[0], 4 * kPage), 4u);
  EXPECT_EQ(slabs.take(4 * kPage), blocks[1]) << "it is taken again before new ones";
}

TEST(Slabs, AnEmptySlabIsUnmapped) {
  Slabs slabs;
  std::byte* const first = slabs.take(kPage);
  std::byte* const other = slabs.take(2 * kPage);
  EXPECT_EQ(slabs.count(), 2u) << "one for each size";
  slabs.give(first, kPage);
  EXPECT_EQ(slabs.count(), 1u);
  slabs.give(other, 2 * kPage);
  EXPECT_EQ(slabs.count(), 0u);
}

TEST(Slabs, BlocksNeverOverlap) {
  Slabs slabs;
  std::mt19937 random(3);
  struct Block {
    std::byte* data;
    std::size_t size;
    std::byte mark;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 5000; ++i) {
    if (blocks.size() > 300 || (!blocks.empty() && random() % 3 == 0)) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Block block = blocks.back();
      ASSERT_EQ(block.data[0], block.mark);
      ASSERT_EQ(block.data[block.size - 1], block.mark);
      Slabs::release(block.data, block.size);
      slabs.give(block.data, block.size);
      blocks.pop_back();
    } else {
      const std::size_t size = (1 + random() % (Slabs::kMaxBlock / kPage)) * kPage;
      const Block block{slabs.take(size), size, std::byte(1 + i % 200)};
      ASSERT_EQ(block.data[0], std::byte{0});
      ASSERT_EQ(block.data[size - 1], std::byte{0});
      block.data[0] = block.data[size - 1] = block.mark;
      blocks.push_back(block);
    }
  }
  for (const Block& block : blocks) {
    Slabs::release(block.data, block.size);
    slabs.give(block.data, block.size);
  }
  EXPECT_EQ(slabs.count(), 0u);
}

}  // namespace slabs_test
}  // namespace batchfs
