#include "engine/dataset/units.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace units_test {

TEST(Units, AreTextsThatMayBeMissing) {
  Variable variable;
  EXPECT_EQ(units_of(variable), "");
  variable.attributes["units"] = 1;
  EXPECT_EQ(units_of(variable), "");
  variable.attributes["units"] = "K";
  EXPECT_EQ(units_of(variable), "K");
}

TEST(Units, AreTheSameInAnySpelling) {
  EXPECT_TRUE(are_same_units("degrees_north", "degree_N"));
  EXPECT_TRUE(are_same_units("degrees_east", " deg"));
  EXPECT_TRUE(are_same_units("hPa", "millibars"));
  EXPECT_TRUE(are_same_units("kelvin", "K"));
  EXPECT_TRUE(are_same_units("1", ""));
  EXPECT_TRUE(are_same_units("kg m-2", "kg m-2"));
  EXPECT_FALSE(are_same_units("m", "km"));
  EXPECT_FALSE(are_same_units("K", "degC"));
  EXPECT_FALSE(are_same_units("m", ""));
}

}  // namespace units_test
}  // namespace batchfs
