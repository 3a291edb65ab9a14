#include "engine/view/made/formula.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "engine/view/made/sun.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace formula_test {

/// Times: 2020-02-29T00, T06, 2020-06-20T12 and no time.
class FormulaTest : public testing::Test {
 protected:
  FormulaTest() {
    data_.declare("a", "<f4", {"time", "x"}, {4, 1}, {4, 1})
        .index<std::int64_t>("time", "<i8", {0, 6, 112 * 24 + 12, -1},
                             {{"units", "hours since 2020-02-29"}, {"_FillValue", -1}})
        .index<std::int64_t>("x", "<i8", {0});
  }
  std::vector<double> evaluate(const std::string& json, std::int64_t position,
                               const CellRun& cells) const {
    const Json document = parse_json("[" + json + "]", "");
    const MadeSpec spec = parse_tensor_variables(JsonRef(document, "v")).made.at(0);
    const auto dataset = data_.dataset();
    const TimeLabels times(*dataset, {{"time"}, ""}, "p");
    std::vector<double> values(static_cast<std::size_t>(cells.count), -99);
    make_formula(spec, latitudes_, longitudes_)->evaluate(&times, position, cells, values.data());
    return values;
  }
  double one(const std::string& name, std::int64_t position, std::int64_t latitude = 0,
             std::int64_t longitude = 0) const {
    return evaluate(R"({"make": ")" + name + "\"}", position, {1, latitude, 0, longitude, 0})[0];
  }

  MemoryData data_;
  const std::shared_ptr<const EarthCoordinate> latitudes_ =
      std::make_shared<EarthCoordinate>(EarthCoordinate{"lat", {"lat"}, {4}, {30, -60, 0, 90}});
  const std::shared_ptr<const EarthCoordinate> longitudes_ =
      std::make_shared<EarthCoordinate>(EarthCoordinate{"lon", {"lon"}, {3}, {0, 200, 350}});
};

TEST_F(FormulaTest, PlacesAreTakenInTheStepsOfTheRun) {
  const auto sines = evaluate(R"({"make": "sin_latitude"})", 0, {3, 0, 1, 2, 0});
  EXPECT_NEAR(sines[0], 0.5, 1e-15);
  EXPECT_NEAR(sines[1], -std::sqrt(3) / 2, 1e-15);
  EXPECT_NEAR(sines[2], 0, 1e-15);
  const auto same = evaluate(R"({"make": "cos_latitude"})", 0, {2, 1, 0, 0, 1});
  EXPECT_NEAR(same[0], 0.5, 1e-15);
  EXPECT_EQ(same[0], same[1]);
  EXPECT_NEAR(one("sin_longitude", 0, 0, 1), -0.34202014332566866, 1e-15);
  EXPECT_NEAR(one("cos_longitude", 0, 0, 2), std::cos(std::numbers::pi / 18), 1e-15);
}

TEST_F(FormulaTest, ProgressOfTheYearAndTheLocalDay) {
  // The year's progress by numpy, for 2020-02-29T06.
  constexpr double kYear = 0.16192132677772264;
  EXPECT_NEAR(one("cos_julian_day", 1), 0.5240103253675754, 1e-14);
  EXPECT_NEAR(one("year_progress", 1), kYear, 1e-12);
  EXPECT_NEAR(one("sin_year_progress", 1), std::sin(2 * std::numbers::pi * kYear), 1e-11);
  EXPECT_NEAR(one("day_progress", 1, 0, 1), 0.25 + 200.0 / 360, 1e-15);
  EXPECT_NEAR(one("day_progress", 1, 0, 2), 0.25 + 350.0 / 360 - 1, 1e-15);
  EXPECT_NEAR(one("sin_day_progress", 1, 0, 1), -0.9396926207859083, 1e-14);
  EXPECT_NEAR(one("cos_local_time", 1, 0, 2), 0.17364817766692978, 1e-14);
}

TEST_F(FormulaTest, AConstantNeedsNoTimes) {
  const Json document = parse_json(R"([{"make": "constant", "value": 2.5}])", "");
  const MadeSpec spec = parse_tensor_variables(JsonRef(document, "v")).made.at(0);
  double out[3] = {};
  make_formula(spec, nullptr, nullptr)->evaluate(nullptr, 0, {3}, out);
  for (const double value : out) EXPECT_EQ(value, 2.5);
}

TEST_F(FormulaTest, TheSunStandsHighAtNoonOfMidsummer) {
  // At the solstice the sun is 23.44 degrees north of the equator, at noon UTC near longitude 0.
  const double tilt = 23.44 * std::numbers::pi / 180;
  EXPECT_NEAR(one("cos_zenith", 2, 3), std::sin(tilt), 1e-3);  // at the pole all day
  EXPECT_NEAR(one("cos_zenith", 2, 0), std::cos(30 * std::numbers::pi / 180 - tilt), 1e-3);
  EXPECT_LT(one("cos_zenith", 2, 2, 1), -0.8);  // night
  EXPECT_EQ(one("insolation", 2, 2, 1), 0);
  EXPECT_NEAR(one("toa_radiation", 2, 3), std::sin(tilt) * solar_irradiance(172), 2);
  EXPECT_GT(solar_irradiance(3), solar_irradiance(185));  // the earth is nearest in January
}

TEST_F(FormulaTest, AMeanIsTheMeanOfItsTimes) {
  // Twelve hours before 06:00 at the equator, longitude 200, against the sum of minutes.
  const double mean = evaluate(R"({"make": "insolation", "mean": "12h"})", 1, {1, 2, 0, 1, 0})[0];
  double sum = 0;
  for (int minute = 0; minute < 720; ++minute) {
    const Sun sun = sun_at(1582934400 + 6 * 3600 - 60 * (minute + 0.5));
    sum += std::max(0.0,
                    sun.cos_declination * std::cos(sun.hour_angle + 200 * std::numbers::pi / 180));
  }
  EXPECT_NEAR(mean, sum / 720, 0.01);
}

TEST_F(FormulaTest, NoTimeIsNotANumber) {
  for (const char* name : {"cos_julian_day", "year_progress", "day_progress", "cos_zenith",
                           "insolation", "toa_radiation"})
    EXPECT_TRUE(std::isnan(one(name, 3))) << name;
  EXPECT_FALSE(std::isnan(one("sin_latitude", 3)));
}

}  // namespace formula_test
}  // namespace batchfs
