#include "engine/scan/operand_reads.h"

#include <gmock/gmock.h>

#include "engine/dataset/joined/concat_datasets.h"
#include "engine/dataset/joined/join_sources.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace operand_reads_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

MemoryData labelled(const std::vector<double>& labels, std::int64_t chunk) {
  const auto size = static_cast<std::int64_t>(labels.size());
  return MemoryData().index<double>("x", "<f8", labels).declare("t", "<f4", {"x"}, {size}, {chunk});
}

TEST(OperandReads, OfTheFirstSourceAreDirect) {
  const auto dataset = labelled({0, 1, 2, 3}, 2).dataset();
  const OperandReads reads(dataset->variable("t"));
  EXPECT_TRUE(reads.is_direct());
  EXPECT_EQ(reads.parts(), 1u);
  EXPECT_TRUE(reads.has(0, 3));
}

TEST(OperandReads, OfAnotherSourceAreABoxOfEachChunk) {
  const MemoryData first = labelled({0, 1, 2, 3, 4}, 5);
  const MemoryData other = labelled({9, 4, 3, 2, 0}, 2);
  const auto dataset =
      join_sources({{"a", "sources.a", first.dataset(), {}, {}},
                    {"b", "sources.b", other.dataset(), {{"x", "x", "j", JoinRule()}}, {"t"}}});
  const OperandReads reads(dataset->variable("b:t"));
  EXPECT_FALSE(reads.is_direct());
  EXPECT_FALSE(reads.has(0, 1));
  EXPECT_TRUE(reads.has(0, 2));
  // Labels 1 to 4: none, 3, 2 and 1 of the array, in its chunks 1, 1 and 0.
  const std::vector<OperandReads::Read> found = reads.of({{1}, {4}});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].box.start[0], 1);
  EXPECT_EQ(found[0].box.shape[0], 1);
  EXPECT_THAT(found[0].places[0], ElementsAre(Pair(0, 3)));
  EXPECT_EQ(found[1].box.start[0], 2);
  EXPECT_EQ(found[1].box.shape[0], 2);
  EXPECT_THAT(found[1].places[0], ElementsAre(Pair(1, 1), Pair(0, 2)));
  EXPECT_THAT(reads.of({{1}, {1}}), IsEmpty());
}

TEST(OperandReads, OfStoresOneBehindTheOtherAreInTheirParts) {
  const MemoryData one = labelled({0, 1, 2}, 3), two = labelled({3, 4}, 1);
  ConcatRule rule;
  rule.dim = "x";
  const auto dataset = concat_datasets({{"one", one.dataset()}, {"two", two.dataset()}}, rule);
  const OperandReads reads(dataset->variable("t"));
  EXPECT_EQ(reads.parts(), 2u);
  EXPECT_TRUE(reads.has(0, 4));
  const std::vector<OperandReads::Read> found = reads.of({{1}, {4}});
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].part, 0u);
  EXPECT_EQ(found[0].box.start[0], 1);
  EXPECT_THAT(found[0].places[0], ElementsAre(Pair(0, 0), Pair(1, 1)));
  EXPECT_EQ(found[1].part, 1u);
  EXPECT_EQ(found[1].box.start[0], 0);
  EXPECT_THAT(found[1].places[0], ElementsAre(Pair(0, 2)));
  EXPECT_EQ(found[2].box.start[0], 1);
}

}  // namespace operand_reads_test
}  // namespace batchfs
