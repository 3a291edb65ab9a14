#include "engine/write/prediction/open_objects.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace open_objects_test {

constexpr ObjectKey kFirst{0, 4}, kSecond{1, 0};

TEST(OpenObjects, AnObjectIsTakenWithItsLastSample) {
  OpenObjects objects(1 << 20);
  EXPECT_FALSE(objects.add(kFirst, 7, Buffer(8), 2));
  EXPECT_FALSE(objects.add(kSecond, 7, Buffer(8), 2));
  EXPECT_FALSE(objects.add(kFirst, 7, Buffer(16), 2));  // the same again
  const auto taken = objects.add(kFirst, 9, Buffer(8), 2);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->key, kFirst);
  EXPECT_EQ(taken->samples.size(), 2u);
  EXPECT_EQ(taken->samples.at(7).size(), 16u);
  EXPECT_EQ(objects.take_oldest()->key, kSecond);
  EXPECT_FALSE(objects.take_oldest());
}

TEST(OpenObjects, SamplesInPartsCountOnce) {
  OpenObjects objects(1 << 20);
  objects.note_parts(kFirst, {1, 2});
  EXPECT_FALSE(objects.add(kFirst, 2, Buffer(4), 4));
  EXPECT_FALSE(objects.add(kFirst, 3, Buffer(4), 4));
  const auto taken = objects.add(kFirst, 5, Buffer(4), 4);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->samples.size(), 3u);
}

TEST(OpenObjects, TheOldestLeaveBeyondTheBudget) {
  OpenObjects objects(2 * (1000 + OpenObjects::kSampleBytes));
  objects.add(kSecond, 1, Buffer(1000), 9);
  objects.add(kFirst, 1, Buffer(1000), 9);
  EXPECT_FALSE(objects.take_excess());
  objects.add(kSecond, 1, Buffer(1000), 9);  // replaces itself
  EXPECT_FALSE(objects.take_excess());
  objects.add(kFirst, 2, Buffer(1), 9);
  EXPECT_EQ(objects.take_excess()->key, kSecond);
  EXPECT_FALSE(objects.take_excess());
  // Its sample is in a part now.
  const auto taken = objects.add(kSecond, 3, Buffer(1), 2);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->samples.size(), 1u);
}

}  // namespace open_objects_test
}  // namespace batchfs
