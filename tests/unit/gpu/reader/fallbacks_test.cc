#include "gpu/reader/fallbacks.h"

#include <gmock/gmock.h>

namespace batchfs::reader {
namespace fallbacks_test {

using handoff::Fallback;
using testing::HasSubstr;

TEST(Fallbacks, NothingIsSaidOfBatchesOfTheGpu) {
  Fallbacks fallbacks;
  EXPECT_EQ(fallbacks.text(), "");
  fallbacks.add(Fallback::none);
  EXPECT_EQ(fallbacks.text(), "");
}

TEST(Fallbacks, EachReasonIsCountedAndNamed) {
  Fallbacks fallbacks;
  for (int i = 0; i < 29; ++i) fallbacks.add(Fallback::none);
  for (int i = 0; i < 12; ++i) fallbacks.add(Fallback::slots_held);
  for (int i = 0; i < 3; ++i) fallbacks.add(Fallback::by_number);
  EXPECT_THAT(fallbacks.text(), HasSubstr("15 of 44 batches were made on the host: 3 because"));
  EXPECT_THAT(fallbacks.text(), HasSubstr("(by_number); 12 because"));
  EXPECT_THAT(fallbacks.text(), HasSubstr("(slots_held)"));
}

TEST(Fallbacks, AReasonOfANewerServerIsAFailure) {
  Fallbacks fallbacks;
  fallbacks.add(static_cast<Fallback>(77));
  EXPECT_THAT(fallbacks.text(), HasSubstr("1 of 1 batches were made on the host: 1 because"));
  EXPECT_THAT(fallbacks.text(), HasSubstr("(failed)"));
}

}  // namespace fallbacks_test
}  // namespace batchfs::reader
