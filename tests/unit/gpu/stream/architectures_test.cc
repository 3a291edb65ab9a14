// Expected values: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".

#include "gpu/stream/architectures.h"

#include <gtest/gtest.h>

namespace batchfs::gpu {
namespace architectures_test {

constexpr const char* kShipped = "75-real,80-real,86-real,89-real,90-real,100-real,120";

TEST(Architectures, MachineCodeRunsOnItsCapabilityAndLaterMinorOnes) {
  EXPECT_EQ(why_no_kernel("80-real", {8, 0}), "");
  EXPECT_EQ(why_no_kernel("80-real", {8, 9}), "");
  EXPECT_NE(why_no_kernel("86-real", {8, 0}), "");
  EXPECT_NE(why_no_kernel("80-real", {9, 0}), "");
  EXPECT_NE(why_no_kernel("90-real", {8, 9}), "");
}

TEST(Architectures, PtxRunsOnEveryLaterCapability) {
  EXPECT_EQ(why_no_kernel("75-virtual", {9, 0}), "");
  EXPECT_EQ(why_no_kernel("75-virtual", {7, 5}), "");
  EXPECT_NE(why_no_kernel("75-virtual", {7, 0}), "");
  EXPECT_EQ(why_no_kernel("80", {12, 0}), "");
}

TEST(Architectures, SuffixesBindToOneCapabilityOrItsFamily) {
  EXPECT_EQ(why_no_kernel("90a", {9, 0}), "");
  EXPECT_NE(why_no_kernel("90a", {10, 0}), "");
  EXPECT_EQ(why_no_kernel("100f", {10, 3}), "");
  EXPECT_NE(why_no_kernel("100f", {12, 0}), "");
}

TEST(Architectures, TheShippedListServesEveryCardOfTheGuide) {
  const ComputeCapability cards[] = {{7, 5}, {8, 0},  {8, 6},  {8, 7},  {8, 9},
                                     {9, 0}, {10, 0}, {10, 3}, {12, 0}, {12, 1}};
  for (const ComputeCapability card : cards)
    EXPECT_EQ(why_no_kernel(kShipped, card), "") << card.major << "." << card.minor;
  EXPECT_EQ(why_no_kernel(kShipped, {13, 0}), "");
  EXPECT_NE(why_no_kernel(kShipped, {7, 0}), "");
  EXPECT_NE(why_no_kernel(kShipped, {11, 0}), "");
}

TEST(Architectures, TheReasonNamesTheCapabilityAndWhatWasBuilt) {
  EXPECT_EQ(why_no_kernel("80-real,90", {7, 5}),
            "not supported by this build: compute capability 7.5, built for 8.0, 9.0 and newer");
  EXPECT_EQ(why_no_kernel("", {9, 0}),
            "not supported by this build: compute capability 9.0, built for none");
}

TEST(Architectures, ListsThatOnlyTheCompilerKnowsAreTakenToRun) {
  EXPECT_EQ(why_no_kernel("native", {8, 6}), "");
  EXPECT_EQ(why_no_kernel("all-major", {8, 6}), "");
}

}  // namespace architectures_test
}  // namespace batchfs::gpu
