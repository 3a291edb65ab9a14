#include "engine/view/samples/label_offsets.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace label_offsets_test {

using testing::ElementsAre;

std::vector<std::int64_t> firsts(const LabelOffsets& offsets, std::size_t o) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < offsets.times().size(); ++i) result.push_back(offsets.first(o, i));
  return result;
}

LabelOffsets offsets_of(const std::vector<std::int32_t>& hours,
                        const std::vector<const char*>& texts) {
  const auto dataset =
      MemoryData().index("time", "<i4", hours, {{"units", "hours since 2000-01-01"}}).dataset();
  std::vector<Duration> durations;
  for (const char* text : texts) durations.push_back(*parse_duration(text));
  return LabelOffsets(
      std::make_shared<TimeSteps>(
          *dataset, "time", Positions::range(0, static_cast<std::int64_t>(hours.size())), "p"),
      durations);
}

TEST(LabelOffsets, FindLabelsOnBothSidesOfAGap) {
  const LabelOffsets offsets = offsets_of({0, 6, 12, 24, 30, 36}, {"-12h", "0h", "6h", "5h"});
  EXPECT_THAT(firsts(offsets, 0), ElementsAre(-1, -1, 0, 2, -1, 3));
  EXPECT_THAT(firsts(offsets, 1), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(firsts(offsets, 2), ElementsAre(1, 2, -1, 4, 5, -1));
  EXPECT_THAT(firsts(offsets, 3), ElementsAre(-1, -1, -1, -1, -1, -1));
}

TEST(LabelOffsets, OfLabelsStoredDownwardsAndOfNone) {
  EXPECT_THAT(firsts(offsets_of({36, 30, 24, 12}, {"6h"}), 0), ElementsAre(-1, 0, 1, -1));
  EXPECT_TRUE(firsts(offsets_of({}, {"6h"}), 0).empty());
}

}  // namespace label_offsets_test
}  // namespace batchfs
