#include "tools/page/axis_ticks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/page/number_text.h"

namespace batchfs {

namespace {

constexpr std::array<const char*, 7> kSizeUnits{"B", "KB", "MB", "GB", "TB", "PB", "EB"};

/// The power of 1024 in which `bytes` is at least 1.
std::size_t unit_of(double bytes) {
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kSizeUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit;
}

}  // namespace

double round_step(double range, int most, bool whole) {
  if (!(range > 0) || !std::isfinite(range)) return 1;
  const double least = range / std::max(most, 1);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= least * (1 - 1e-9))
      return whole ? std::max(1.0, factor * power) : factor * power;
  return 10 * power;
}

std::vector<double> ticks_to(double largest, int most, bool whole) {
  const double step = round_step(largest, most, whole);
  std::vector<double> ticks{0, step};
  while (ticks.back() < largest * (1 - 1e-9))
    ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

std::vector<double> byte_ticks_to(double largest, int most) {
  const double unit = std::pow(1024, static_cast<double>(unit_of(largest)));
  std::vector<double> ticks = ticks_to(largest / unit, most);
  for (double& tick : ticks) tick *= unit;
  return ticks;
}

std::vector<double> ticks_between(double from, double to, int most) {
  std::vector<double> ticks;
  const double step = round_step(to - from, most);
  for (double number = std::ceil(from / step - 1e-9); number * step <= to + step * 1e-9; ++number)
    ticks.push_back(number * step + 0.0);  // no zero with a sign
  return ticks;
}

std::string tick_text(double value) { return number_text(value, 6); }

std::string count_tick_text(double count) {
  constexpr double kExact = 1e4, kThousand = 1e3;
  constexpr std::array<const char*, 3> kUnits{"k", "M", "G"};
  if (count < kExact) return tick_text(count);
  std::size_t unit = 0;
  for (count /= kThousand; count >= kThousand && unit + 1 < kUnits.size(); ++unit)
    count /= kThousand;
  return fmt::format("{:.4g}{}", count, kUnits[unit]);
}

std::string byte_tick_text(double bytes) {
  const std::size_t unit = unit_of(bytes);
  return bytes > 0 ? fmt::format("{:.4g} {}", bytes / std::pow(1024, static_cast<double>(unit)),
                                 kSizeUnits[unit])
                   : "0";
}

}  // namespace batchfs
