#include "tools/monitor/report_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "tools/monitor/activity.h"
#include "tools/monitor/top_screen.h"
#include "tools/page/axis_ticks.h"
#include "tools/page/svg.h"

namespace batchfs {

namespace {

constexpr double kWidth = 720, kLeft = 110;  // user units; the rest is for names and scales
constexpr double kRight = 14;                // for half of the last label
constexpr std::size_t kMaxReaders = 16, kMaxGets = 1500;
constexpr std::size_t kPictureBins = 240;

std::string svg(const char* name, double height, const std::string& inside) {
  return svg_picture(name, kWidth, height, inside);
}

std::string axis(double y) { return svg_axis(kLeft, kWidth - kRight, y); }

/// Room of a picture between its scales.
constexpr double kInside = kWidth - kLeft - kRight;

/// Seconds below a picture that shows `from` to `to`.
std::string time_scale(double from, double to, double y) {
  std::string text = axis(y);
  for (const double tick : ticks_between(from, to, 6))
    text += svg_text(kLeft + (tick - from) / std::max(1e-9, to - from) * kInside, y + 15,
                     tick_text(tick) + " s", "middle");
  return text;
}

/// Lines across a picture, with their values at the left. The last is at the top.
std::string value_scale(const std::vector<double>& ticks, double top, double height,
                        std::string (*text)(double)) {
  std::string lines;
  for (const double tick : ticks) {
    const double y = top + height * (1 - tick / ticks.back());
    lines += axis(y) + svg_text(kLeft - 8, y + 4, text(tick), "end");
  }
  return lines;
}

std::string area(const char* kind, const std::vector<double>& values, double most, double top,
                 double height) {
  std::string points = fmt::format("{:.1f},{:.1f}", kLeft, top + height);
  const double step = kInside / static_cast<double>(std::max<std::size_t>(1, values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double y = top + height * (1 - values[i] / most),
                 x = kLeft + static_cast<double>(i) * step;
    points += fmt::format(" {:.1f},{:.1f} {:.1f},{:.1f}", x, y, x + step, y);
  }
  points += fmt::format(" {:.1f},{:.1f}", kWidth - kRight, top + height);
  return fmt::format("<polygon class=\"{}\" points=\"{}\"/>\n", kind, points);
}

std::string nothing() { return "<p class=\"of\">Nothing was read in this time.</p>\n"; }

double largest(const std::vector<double>& values) {
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  return most > 0 ? most : 1;
}

}  // namespace

std::string readers_picture(const Timeline& timeline) {
  if (timeline.readers.empty()) return nothing();
  const std::size_t readers = std::min(kMaxReaders, timeline.readers.size());
  const std::size_t gets = kMaxGets / readers;
  double from = timeline.seconds;
  for (std::size_t r = 0; r < readers; ++r) {
    const auto& all = timeline.readers[r].gets;
    from = std::min(from, all[all.size() > gets ? all.size() - gets : 0].wait.begin);
  }
  const double to = std::max(from + 1e-6, timeline.seconds), scale = kInside / (to - from);
  constexpr double kRow = 26;
  std::string inside;
  for (std::size_t r = 0; r < readers; ++r) {
    const Timeline::Reader& reader = timeline.readers[r];
    const double y = 4 + kRow * static_cast<double>(r);
    inside += svg_text(0, y + 13,
                       cut_to(fmt::format("{} {}/{}", reader.view, reader.rank, reader.world), 20));
    for (std::size_t i = reader.gets.size() > gets ? reader.gets.size() - gets : 0;
         i < reader.gets.size(); ++i) {
      const Timeline::Get& get = reader.gets[i];
      const double used_until = get.used_until >= 0 ? get.used_until : to;
      const bool idle = get.used_until < 0 && used_until - get.wait.end > kIdleSeconds;
      const std::string tip =
          fmt::format("epoch {} batch {}: waited {}, used {}{}", get.epoch, get.batch,
                      duration_text(get.wait.end - get.wait.begin),
                      get.used_until >= 0 ? duration_text(used_until - get.wait.end)
                      : idle              ? "or idle since"
                                          : "since",
                      get.failed ? ", failed" : "");
      inside += svg_bar(idle ? "idle" : "use", kLeft + (get.wait.end - from) * scale, y + 4,
                        (used_until - get.wait.end) * scale, 12, tip);
      inside += svg_bar("wait", kLeft + (get.wait.begin - from) * scale, y,
                        (get.wait.end - get.wait.begin) * scale, 20, tip);
    }
  }
  const double bottom = 8 + kRow * static_cast<double>(readers);
  if (timeline.readers.size() > readers)
    inside +=
        svg_text(0, bottom + 14, fmt::format("and {} more", timeline.readers.size() - readers));
  return svg("When readers waited and used batches", bottom + 22,
             inside + time_scale(from, to, bottom));
}

std::string work_picture(const Timeline& timeline) {
  if (timeline.fetches.empty() && timeline.decodes.empty()) return nothing();
  constexpr double kHeight = 70;
  std::string inside;
  double top = 6;
  for (const auto& [kind, spans] :
       {std::pair{"fetch", &timeline.fetches}, std::pair{"decode", &timeline.decodes}}) {
    const std::vector<double> busy = under_way(*spans, timeline.seconds, kPictureBins);
    const std::vector<double> ticks = ticks_to(largest(busy), 3, true);
    inside += value_scale(ticks, top, kHeight, tick_text) +
              area(kind, busy, ticks.back(), top, kHeight) + svg_text(0, top + kHeight, kind);
    top += kHeight + 14;
  }
  return svg("Fetches and decodes under way", top + 14,
             inside + time_scale(0, timeline.seconds, top - 4));
}

std::string waits_picture(const Timeline& timeline) {
  // Three bars for each power of ten from 10 us to 100 s.
  constexpr std::array<double, 3> kSteps{1, 2, 5};
  std::vector<double> edges;
  for (double unit = 1e-5; unit < 99; unit *= 10)
    for (const double step : kSteps) edges.push_back(unit * step);
  std::vector<double> counts(edges.size() + 1, 0.0);
  double all = 0;
  for (const Timeline::Reader& reader : timeline.readers)
    for (const Timeline::Get& get : reader.gets) {
      const double took = get.wait.end - get.wait.begin;
      ++counts[static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), took) -
                                        edges.begin())];
      ++all;
    }
  if (all == 0) return nothing();
  constexpr double kHeight = 130;
  const std::vector<double> ticks = ticks_to(largest(counts), 4, true);
  const double most = ticks.back(), step = kInside / static_cast<double>(counts.size());
  std::string inside =
      value_scale(ticks, 8, kHeight, tick_text) + svg_text(0, kHeight / 2, "batches");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double height = kHeight * counts[i] / most;
    const std::string upper = i < edges.size() ? duration_text(edges[i]) : "longer";
    inside += svg_bar("wait", kLeft + static_cast<double>(i) * step + 1, 8 + kHeight - height,
                      step - 2, height, fmt::format("{:.0f} batches: up to {}", counts[i], upper));
    if (i % 3 == 0 && i < edges.size())
      inside += svg_text(kLeft + static_cast<double>(i + 1) * step, kHeight + 23,
                         duration_text(edges[i]), "middle");
  }
  return svg("How many waits took how long", kHeight + 28, inside);
}

std::string throughput_picture(const Timeline& timeline) {
  if (timeline.readers.empty() || !(timeline.seconds > 0)) return nothing();
  constexpr std::size_t kTimes = 60;
  std::vector<double> bytes(kTimes, 0.0);
  const double width = timeline.seconds / kTimes;
  for (const Timeline::Reader& reader : timeline.readers)
    for (const Timeline::Get& get : reader.gets)
      bytes[std::min(kTimes - 1, static_cast<std::size_t>(get.wait.end / width))] +=
          static_cast<double>(get.bytes) / width;
  constexpr double kHeight = 90;
  const std::vector<double> ticks = byte_ticks_to(largest(bytes), 3);
  return svg("Bytes per second that readers got", kHeight + 28,
             value_scale(ticks, 8, kHeight,
                         [](double bytes_per_second) {
                           return byte_tick_text(bytes_per_second) +
                                  (bytes_per_second > 0 ? "/s" : "");
                         }) +
                 area("use", bytes, ticks.back(), 8, kHeight) +
                 time_scale(0, timeline.seconds, kHeight + 8));
}

}  // namespace batchfs
