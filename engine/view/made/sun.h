#pragma once
// Where the sun stands: the low-precision formulas of the Astronomical Almanac, section C, which
// are good to 0.01 degrees between 1950 and 2050. UT1 is taken to be UTC.

#include <cstdint>

namespace batchfs {

/// The sun as seen from the centre of the earth. The cosine of its zenith angle at a place is
/// sin_declination sin(latitude) + cos_declination cos(latitude) cos(hour_angle + longitude).
struct Sun {
  double sin_declination = 0, cos_declination = 0;
  double hour_angle = 0;  // at longitude 0, radians
};

/// `seconds` since 1970-01-01T00:00:00 UTC.
Sun sun_at(double seconds);

/// The irradiance of a plane above the atmosphere that faces the sun [W m-2]. `day`: of the year, 1
/// to 366.
double solar_irradiance(int day);

/// Nodes and weights of the Gauss-Legendre quadrature over [-1, 1] with 10 points. Weights add up
/// to 2.
struct GaussPoint {
  double node, weight;
};
inline constexpr int kGaussPoints = 10;
extern const GaussPoint kGauss[kGaussPoints];

}  // namespace batchfs
