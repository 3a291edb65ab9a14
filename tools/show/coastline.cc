#include "tools/show/coastline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace batchfs {

extern const char* const kCoastlineText;  // coastline_data.cc

namespace {

/// The next number of an encoded line; nullopt at its end.
std::optional<int> next_number(const char*& text) {
  constexpr int kFirst = 63, kMore = 32, kBits = 5, kMaxBits = 30;
  int value = 0;
  for (int shift = 0; shift <= kMaxBits; shift += kBits) {
    while (*text == '\n') ++text;
    const int letter = static_cast<unsigned char>(*text) - kFirst;
    if (letter < 0 || letter > kFirst) return std::nullopt;
    ++text;
    value |= (letter & (kMore - 1)) << shift;
    if (letter < kMore) return (value & 1) != 0 ? ~(value >> 1) : value >> 1;
  }
  return std::nullopt;
}

/// From degrees to places on a map: between the middles of cells linearly, beyond the outermost as
/// between the last two.
class Axis {
 public:
  /// nullopt unless `degrees` rise or fall throughout.
  static std::optional<Axis> of(std::vector<double> degrees, double length) {
    constexpr double kMax = 720;
    const auto out_of_range = [](double value) { return !(std::fabs(value) <= kMax); };
    if (degrees.size() < 2 || std::any_of(degrees.begin(), degrees.end(), out_of_range))
      return std::nullopt;
    const bool falls = degrees.front() > degrees.back();
    if (falls) std::reverse(degrees.begin(), degrees.end());
    if (std::adjacent_find(degrees.begin(), degrees.end(), std::greater_equal<>()) != degrees.end())
      return std::nullopt;
    return Axis(std::move(degrees), falls, length);
  }

  double place(double degree) const {
    const auto after = std::upper_bound(degrees_.begin() + 1, degrees_.end() - 1, degree);
    const auto i = static_cast<std::size_t>(after - degrees_.begin()) - 1;
    const double index = static_cast<double>(i) + (degree - degrees_[i]) / (*after - degrees_[i]);
    const double part = (index + 0.5) / static_cast<double>(degrees_.size());
    return length_ * (falls_ ? 1 - part : part);
  }

 private:
  Axis(std::vector<double> degrees, bool falls, double length)
      : degrees_(std::move(degrees)), falls_(falls), length_(length) {}
  std::vector<double> degrees_;  // rising
  bool falls_;
  double length_;
};

/// Writes a line; pieces of it that are out of sight are left out.
class PathWriter {
 public:
  PathWriter(double width, double height) : width_(width), height_(height) {}
  void begin() { has_last_ = is_drawn_ = false; }
  void point(double x, double y) {
    constexpr double kFar = 1e5;  // of the picture: damaged axes put points anywhere
    const Point now{std::lround(std::clamp(x, -kFar, kFar)),
                    std::lround(std::clamp(y, -kFar, kFar))};
    if (has_last_ && now == last_) return;
    if (has_last_ && is_seen(last_, now)) {
      if (!is_drawn_) text_ += fmt::format("M{} {}", last_.first, last_.second);
      text_ += fmt::format("l{} {}", now.first - last_.first, now.second - last_.second);
      is_drawn_ = true;
    } else {
      is_drawn_ = false;
    }
    last_ = now;
    has_last_ = true;
  }
  std::string take() { return std::move(text_); }

 private:
  using Point = std::pair<long, long>;
  bool is_seen(const Point& a, const Point& b) const {
    const auto spans = [](long one, long other, double length) {
      return static_cast<double>(std::max(one, other)) >= 0 &&
             static_cast<double>(std::min(one, other)) <= length;
    };
    return spans(a.first, b.first, width_) && spans(a.second, b.second, height_);
  }
  const double width_, height_;
  Point last_{};
  bool has_last_ = false, is_drawn_ = false;
  std::string text_;
};

}  // namespace

std::vector<Polyline> parse_polylines(const char* text) {
  constexpr double kTenth = 0.1;
  std::vector<Polyline> lines;
  while (*text != '\0') {
    Polyline line;
    int lon = 0, lat = 0;
    for (;;) {
      const auto east = next_number(text), north = east ? next_number(text) : std::nullopt;
      if (!north) break;
      lon += *east;
      lat += *north;
      line.emplace_back(lon * kTenth, lat * kTenth);
    }
    if (line.size() > 1) lines.push_back(std::move(line));
    if (*text != '\0') ++text;
  }
  return lines;
}

const std::vector<Polyline>& coastlines() {
  static const std::vector<Polyline> lines = parse_polylines(kCoastlineText);
  return lines;
}

std::string coast_path(const std::vector<double>& longitudes, const std::vector<double>& latitudes,
                       double width, double height) {
  const auto across = Axis::of(longitudes, width), down = Axis::of(latitudes, height);
  if (!across || !down) return {};
  PathWriter path(width, height);
  constexpr double kCircle = 360;
  for (const double turn : {-kCircle, 0.0, kCircle})
    for (const Polyline& line : coastlines()) {
      path.begin();
      for (const auto& [lon, lat] : line) path.point(across->place(lon + turn), down->place(lat));
    }
  return path.take();
}

}  // namespace batchfs
