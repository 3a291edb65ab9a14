#include "engine/view/made/sun.h"

#include <cmath>
#include <numbers>

namespace batchfs {

namespace {

constexpr double kRadians = std::numbers::pi / 180;  // of a degree
constexpr double kSolarConstant = 1361;              // W m-2
constexpr double kSecondsTo2000 = 946728000;         // 2000-01-01T12:00:00, the epoch J2000.0

/// Converts degrees to radians without losing digits to whole turns.
double reduced(double degrees) { return std::fmod(degrees, 360) * kRadians; }

}  // namespace

const GaussPoint kGauss[kGaussPoints] = {
    {-0.9739065285171717, 0.0666713443086881}, {-0.8650633666889845, 0.1494513491505806},
    {-0.6794095682990244, 0.2190863625159820}, {-0.4333953941292472, 0.2692667193099963},
    {-0.1488743389816312, 0.2955242247147529}, {0.1488743389816312, 0.2955242247147529},
    {0.4333953941292472, 0.2692667193099963},  {0.6794095682990244, 0.2190863625159820},
    {0.8650633666889845, 0.1494513491505806},  {0.9739065285171717, 0.0666713443086881}};

Sun sun_at(double seconds) {
  const double days = (seconds - kSecondsTo2000) / 86400;
  const double anomaly = reduced(357.528 + 0.9856003 * days);
  const double longitude = reduced(280.460 + 0.9856474 * days + 1.915 * std::sin(anomaly) +
                                   0.020 * std::sin(2 * anomaly));
  const double obliquity = (23.439 - 0.0000004 * days) * kRadians;
  const double ascension =
      std::atan2(std::cos(obliquity) * std::sin(longitude), std::cos(longitude));
  Sun sun;
  sun.sin_declination = std::sin(obliquity) * std::sin(longitude);
  sun.cos_declination = std::sqrt(1 - sun.sin_declination * sun.sin_declination);
  sun.hour_angle = reduced(280.46061837 + 360.98564736629 * days) - ascension;
  return sun;
}

double solar_irradiance(int day) {
  return kSolarConstant * (1 + 0.033 * std::cos(2 * std::numbers::pi * day / 365));
}

}  // namespace batchfs
