#include "gpu/program/program_setup.h"

#include <random>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs::gpu {
namespace program_setup_test {

ProgramSetup setup() {
  ProgramSetup made;
  made.sizes = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 64, 9000};
  made.lanes = 4;
  made.slots = 3;
  made.slot_bytes = 3000;
  made.conversions.resize(2);
  made.conversions[0].copies = true;
  made.conversions[1].item = made.conversions[1].result_item = 4;
  made.conversions[1].normalises = made.conversions[1].in_doubles = true;
  made.conversions[1].divide = 16;
  made.conversions[1].entries = 2;
  made.constants.resize(64, std::byte{7});
  return made;
}

TEST(ProgramSetup, GoesThroughBytes) {
  const ProgramSetup made = setup(), got = ProgramSetup::from_bytes(made.to_bytes());
  EXPECT_EQ(got.sizes.target, 7000u);
  EXPECT_EQ(got.sizes.batch, 9000u);
  EXPECT_EQ(got.slots, 3u);
  EXPECT_EQ(got.slot_bytes, 3000u);
  ASSERT_EQ(got.conversions.size(), 2u);
  EXPECT_EQ(got.conversions[1].entries, 2u);
  EXPECT_EQ(got.constants, made.constants);
}

TEST(ProgramSetup, RefusesWhatMakesNoSense) {
  const auto refused = [](const ProgramSetup& wrong) {
    try {
      ProgramSetup::from_bytes(wrong.to_bytes());
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt;
    }
    return false;
  };
  EXPECT_FALSE(refused(setup()));
  ProgramSetup wrong = setup();
  wrong.conversions[1].entries = 7;  // past the constants
  EXPECT_TRUE(refused(wrong));
  wrong = setup();
  wrong.conversions[1].divide = ~std::uint64_t{7};
  EXPECT_TRUE(refused(wrong));
  wrong = setup();
  wrong.slot_bytes = 3001;
  EXPECT_TRUE(refused(wrong));
  wrong = setup();
  wrong.lanes = 0;
  EXPECT_TRUE(refused(wrong));
  wrong = setup();
  wrong.sizes.constants = 65;
  EXPECT_TRUE(refused(wrong));
  const std::vector<std::byte> bytes = setup().to_bytes();
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_THROW(ProgramSetup::from_bytes(std::span(bytes).first(size)), Error) << size;
}

}  // namespace program_setup_test
}  // namespace batchfs::gpu
