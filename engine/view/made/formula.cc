#include "engine/view/made/formula.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "engine/view/made/sun.h"

namespace batchfs {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr double kDaysOfJulianYear = 365.25;
constexpr double kDaysOfYear = 365.24219;  // GraphCast's mean tropical year

double whole(double share) { return share; }
double sine(double share) { return std::sin(kTurn * share); }
double cosine(double share) { return std::cos(kTurn * share); }
using OfShare = double (*)(double share);

double radians(double degrees) { return degrees * (std::numbers::pi / 180); }

/// In [0, 1), of a share that may go beyond.
double wrapped(double share) { return share - std::floor(share); }

double julian_day(const Instant& time) {
  return (static_cast<double>(time.day - 1) + time.of_day) / kDaysOfJulianYear;
}
double year_progress(const Instant& time) { return wrapped(time.seconds / 86400 / kDaysOfYear); }

class Constant final : public Formula {
 public:
  explicit Constant(double value) : value_(value) {}
  void evaluate(const TimeLabels*, std::int64_t, const CellRun& cells, double* out) const override {
    std::fill_n(out, cells.count, value_);
  }

 private:
  const double value_;
};

/// A function of the latitude, or of the longitude, worked out once.
class OfPlace final : public Formula {
 public:
  OfPlace(const EarthCoordinate& places, EarthAxis axis, double (*function)(double radians))
      : axis_(axis) {
    for (const double degrees : places.degrees) values_.push_back(function(radians(degrees)));
  }
  void evaluate(const TimeLabels*, std::int64_t, const CellRun& cells, double* out) const override {
    const bool latitude = axis_ == EarthAxis::latitude;
    const double* from = values_.data() + (latitude ? cells.latitude : cells.longitude);
    const std::int64_t step = latitude ? cells.latitude_step : cells.longitude_step;
    for (std::int64_t i = 0; i < cells.count; ++i) out[i] = from[i * step];
  }

 private:
  const EarthAxis axis_;
  std::vector<double> values_;
};

/// A function of the share of the year that has passed.
class OfYear final : public Formula {
 public:
  OfYear(double (*share)(const Instant&), OfShare function) : share_(share), function_(function) {}
  void evaluate(const TimeLabels* times, std::int64_t position, const CellRun& cells,
                double* out) const override {
    std::fill_n(out, cells.count, function_(share_(times->at(position))));
  }

 private:
  double (*const share_)(const Instant&);
  const OfShare function_;
};

/// A function of the share of the local day: the sun's mean time at the longitude.
class OfLocalDay final : public Formula {
 public:
  OfLocalDay(std::shared_ptr<const EarthCoordinate> longitudes, OfShare function)
      : longitudes_(std::move(longitudes)), function_(function) {}
  void evaluate(const TimeLabels* times, std::int64_t position, const CellRun& cells,
                double* out) const override {
    const double of_day = times->at(position).of_day;
    const double* longitude = longitudes_->degrees.data() + cells.longitude;
    for (std::int64_t i = 0; i < cells.count; ++i)
      out[i] = function_(wrapped(of_day + longitude[i * cells.longitude_step] / 360));
  }

 private:
  const std::shared_ptr<const EarthCoordinate> longitudes_;
  const OfShare function_;
};

/// The cosine of the zenith angle: a product of tables and a few numbers of the time, and the
/// quantities derived from it.
class OfSun final : public Formula {
 public:
  OfSun(const MadeSpec& spec, const EarthCoordinate& latitudes, const EarthCoordinate& longitudes)
      : made_(spec.kind->made), mean_(spec.mean_nanoseconds) {
    for (const double degrees : latitudes.degrees) {
      sin_latitude_.push_back(std::sin(radians(degrees)));
      cos_latitude_.push_back(std::cos(radians(degrees)));
    }
    for (const double degrees : longitudes.degrees) {
      sin_longitude_.push_back(std::sin(radians(degrees)));
      cos_longitude_.push_back(std::cos(radians(degrees)));
    }
  }

  void evaluate(const TimeLabels* times, std::int64_t position, const CellRun& cells,
                double* out) const override {
    if (mean_ == 0) {
      zenith(times->at(position), cells, out);
      if (made_ != Made::cos_zenith) scale(times->at(position), cells.count, out);
      return;
    }
    std::fill_n(out, cells.count, 0.0);
    std::vector<double> one(static_cast<std::size_t>(cells.count));
    for (const GaussPoint& point : kGauss) {
      const auto later = static_cast<std::int64_t>(
          std::llround(0.5 * (point.node - 1) * static_cast<double>(mean_)));
      const Instant time = times->at(position, later);
      zenith(time, cells, one.data());
      scale(time, cells.count, one.data());
      for (std::int64_t i = 0; i < cells.count; ++i)
        out[i] += 0.5 * point.weight * one[static_cast<std::size_t>(i)];
    }
  }

 private:
  void zenith(const Instant& time, const CellRun& cells, double* out) const {
    const Sun sun = sun_at(time.seconds);
    const double sin_hour = std::sin(sun.hour_angle), cos_hour = std::cos(sun.hour_angle);
    const double* sin_latitude = sin_latitude_.data() + cells.latitude;
    const double* cos_latitude = cos_latitude_.data() + cells.latitude;
    const double* sin_longitude = sin_longitude_.data() + cells.longitude;
    const double* cos_longitude = cos_longitude_.data() + cells.longitude;
    const auto loop = [&](std::int64_t latitude_step, std::int64_t longitude_step) {
      for (std::int64_t i = 0; i < cells.count; ++i) {
        const std::int64_t p = i * latitude_step, l = i * longitude_step;
        out[i] = sun.sin_declination * sin_latitude[p] +
                 sun.cos_declination * cos_latitude[p] *
                     (cos_hour * cos_longitude[l] - sin_hour * sin_longitude[l]);
      }
    };
    // Constant steps let the compiler vectorise the common case.
    if (cells.latitude_step == 0 && cells.longitude_step == 1)
      loop(0, 1);
    else
      loop(cells.latitude_step, cells.longitude_step);
  }

  void scale(const Instant& time, std::int64_t count, double* out) const {
    const double most = made_ == Made::toa_radiation ? solar_irradiance(time.day) : 1;
    for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] < 0 ? 0 : out[i] * most;  // NaN stays
  }

  const Made made_;
  const std::int64_t mean_;  // nanoseconds; 0: instantaneous
  std::vector<double> sin_latitude_, cos_latitude_, sin_longitude_, cos_longitude_;
};

}  // namespace

std::unique_ptr<const Formula> make_formula(
    const MadeSpec& spec, const std::shared_ptr<const EarthCoordinate>& latitudes,
    const std::shared_ptr<const EarthCoordinate>& longitudes) {
  const auto of_latitude = [&](double (*function)(double)) {
    return std::make_unique<OfPlace>(*latitudes, EarthAxis::latitude, function);
  };
  const auto of_longitude = [&](double (*function)(double)) {
    return std::make_unique<OfPlace>(*longitudes, EarthAxis::longitude, function);
  };
  const auto local = [&](OfShare function) {
    return std::make_unique<OfLocalDay>(longitudes, function);
  };
  switch (spec.kind->made) {
    case Made::sin_latitude:
      return of_latitude(std::sin);
    case Made::cos_latitude:
      return of_latitude(std::cos);
    case Made::sin_longitude:
      return of_longitude(std::sin);
    case Made::cos_longitude:
      return of_longitude(std::cos);
    case Made::sin_julian_day:
      return std::make_unique<OfYear>(julian_day, sine);
    case Made::cos_julian_day:
      return std::make_unique<OfYear>(julian_day, cosine);
    case Made::year_progress:
      return std::make_unique<OfYear>(year_progress, whole);
    case Made::sin_year_progress:
      return std::make_unique<OfYear>(year_progress, sine);
    case Made::cos_year_progress:
      return std::make_unique<OfYear>(year_progress, cosine);
    case Made::day_progress:
      return local(whole);
    case Made::sin_local_time:
    case Made::sin_day_progress:
      return local(sine);
    case Made::cos_local_time:
    case Made::cos_day_progress:
      return local(cosine);
    case Made::cos_zenith:
    case Made::insolation:
    case Made::toa_radiation:
      return std::make_unique<OfSun>(spec, *latitudes, *longitudes);
    case Made::constant:
      return std::make_unique<Constant>(spec.value);
    case Made::hypot:
    case Made::sum:
    case Made::difference:
    case Made::product:
    case Made::ratio:
      break;  // see combination.h
  }
  throw Error(ErrorCode::internal, fmt::format("no formula of '{}'", spec.kind->name));
}

}  // namespace batchfs
