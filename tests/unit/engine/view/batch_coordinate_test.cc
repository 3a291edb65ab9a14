#include "engine/view/batch_coordinate.h"

#include <cstring>

#include <gmock/gmock.h>

namespace batchfs {
namespace batch_coordinate_test {

using testing::ElementsAre;

NdArray numbers(std::int64_t count) {
  NdArray array{
      make_type(Kind::signed_int, 8), {count}, Buffer(static_cast<std::size_t>(count) * 8)};
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(array.data.data() + 8 * i, &i, 8);
  return array;
}

std::vector<std::int64_t> read(const BatchCoordinate& coordinate, RowRange range) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(range.count));
  coordinate.read(range, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(BatchCoordinate, IsAPartOfAnArray) {
  const NdArray array = numbers(10);
  const BatchCoordinate part = coordinate_part(array, 3, 4);
  EXPECT_EQ(part.count, 4);
  EXPECT_EQ(part.bytes(), 32u);
  EXPECT_THAT(read(part, {0, 4}), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(read(part, {2, 1}), ElementsAre(5));
  EXPECT_THAT(read(part, {4, 0}), ElementsAre());
}

TEST(BatchCoordinate, KeepsAnArrayOfItsOwn) {
  BatchCoordinate whole = whole_coordinate(numbers(5));
  const BatchCoordinate copy = whole;
  whole = {};
  EXPECT_THAT(read(copy, {3, 2}), ElementsAre(3, 4));
}

TEST(BatchCoordinate, GivesAllValuesPieceByPiece) {
  const std::int64_t count = 3 * kRowsAtATime + 1;
  const NdArray array = numbers(count);
  BatchCoordinate coordinate = coordinate_part(array, 0, count);
  std::int64_t most = 0;
  coordinate.read = [&most, read = coordinate.read](RowRange range, std::byte* out) {
    most = std::max(most, range.count);
    read(range, out);
  };
  const NdArray values = coordinate.values();
  EXPECT_EQ(values.shape, (Dims{count}));
  EXPECT_EQ(std::memcmp(values.data.data(), array.data.data(), array.data.size()), 0);
  EXPECT_EQ(most, kRowsAtATime);
}

}  // namespace batch_coordinate_test
}  // namespace batchfs
