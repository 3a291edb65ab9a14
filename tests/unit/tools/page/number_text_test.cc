#include "tools/page/number_text.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace number_text_test {

TEST(NumberText, BothEndsOfARangeLookAlike) {
  EXPECT_EQ(number_text(3e5, 5), "300000");
  EXPECT_EQ(number_text(301090, 5), "301090");
  EXPECT_EQ(number_text(-5e6, 5), "-5000000");
  EXPECT_EQ(number_text(99999.6, 5), "100000");
  EXPECT_EQ(number_text(1e6, 6), "1000000");
}

TEST(NumberText, FractionsHaveTheirSignificantDigits) {
  EXPECT_EQ(number_text(0.25, 5), "0.25");
  EXPECT_EQ(number_text(273.15625, 5), "273.16");
  EXPECT_EQ(number_text(-0.0, 5), "0");
  EXPECT_EQ(number_text(1e-9, 5), "1e-09");
  EXPECT_EQ(number_text(1e20, 5), "1e+20");
}

}  // namespace number_text_test
}  // namespace batchfs
