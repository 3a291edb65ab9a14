#include "engine/view/made/sun.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace batchfs {
namespace sun_test {

double degrees(double radians) { return radians * 180 / std::numbers::pi; }

TEST(Sun, IsNorthmostAtTheSolstice) {
  // 2020-06-20T21:44 UTC; the obliquity of the ecliptic is 23.4366 degrees.
  EXPECT_NEAR(degrees(std::asin(sun_at(1592689440).sin_declination)), 23.4366, 0.01);
}

TEST(Sun, CrossesTheEquatorAtTheEquinox) {
  // 2020-03-20T03:50 UTC.
  EXPECT_NEAR(degrees(std::asin(sun_at(1584676200).sin_declination)), 0, 0.01);
}

TEST(Sun, StandsSouthOfGreenwichAtApparentNoon) {
  // 2020-11-03T11:43:35 UTC: the equation of time is 16 min 25 s.
  EXPECT_NEAR(degrees(std::remainder(sun_at(1604403815).hour_angle, 2 * std::numbers::pi)), 0,
              0.02);
}

TEST(Sun, IsStrongestInJanuary) {
  EXPECT_DOUBLE_EQ(solar_irradiance(365), 1361 * 1.033);
  EXPECT_NEAR(solar_irradiance(182), 1361 * 0.967, 0.01);
}

TEST(Sun, QuadratureIsExactForPolynomialsOfDegree19) {
  double ones = 0, powers = 0;
  for (const GaussPoint& point : kGauss) {
    ones += point.weight;
    powers += point.weight * std::pow(point.node, 18);
  }
  EXPECT_NEAR(ones, 2, 1e-15);
  EXPECT_NEAR(powers, 2.0 / 19, 1e-15);
}

}  // namespace sun_test
}  // namespace batchfs
