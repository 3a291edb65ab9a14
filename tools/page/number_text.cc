#include "tools/page/number_text.h"

#include <cmath>

#include <fmt/format.h>

namespace batchfs {

std::string number_text(double value, int digits) {
  constexpr double kLongest = 1e15;  // with more digits nobody counts them
  const bool whole = std::fabs(value) >= std::pow(10, digits - 1) && std::fabs(value) < kLongest;
  std::string text = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
  return text == "-0" ? "0" : text;
}

}  // namespace batchfs
