#include "tools/monitor/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "tools/cli/json_fields.h"

namespace batchfs {

namespace {

/// A complete event, of those that this knows.
struct Event {
  std::string name;
  Timeline::Span span;  // seconds of the clock
  const Json* args;
};

std::vector<Event> complete_events(const Json& trace) {
  if (!trace.is_array()) throw Error(ErrorCode::corrupt, "is not a list of events", "trace.json");
  std::vector<Event> events;
  for (const Json& json : trace) {
    if (!json.is_object() || text_field(json, "ph") != "X") continue;
    const auto args = json.find("args");
    const double begin = number_field(json, "ts") * 1e-6, took = number_field(json, "dur") * 1e-6;
    if (args == json.end() || !args->is_object() || !std::isfinite(begin) || !(took >= 0)) continue;
    events.push_back({text_field(json, "name"), {begin, begin + took}, &*args});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.span.begin < b.span.begin; });
  return events;
}

}  // namespace

Timeline timeline(const Json& trace) {
  Timeline line;
  const std::vector<Event> events = complete_events(trace);
  if (events.empty()) return line;
  const double first = events.front().span.begin;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Timeline::Reader> readers;
  for (const Event& event : events) {
    const Timeline::Span span{event.span.begin - first, event.span.end - first};
    line.seconds = std::max(line.seconds, span.end);
    if (event.name == "fetch")
      line.fetches.push_back(span);
    else if (event.name == "decode")
      line.decodes.push_back(span);
    else if (event.name == "assemble")
      line.assemblies.push_back(span);
    else if (event.name == "wait" && text_field(*event.args, "end") != "the reader left") {
      Timeline::Reader& reader =
          readers[{text_field(*event.args, "view"), integer_field(*event.args, "world"),
                   integer_field(*event.args, "rank")}];
      if (!reader.gets.empty())
        reader.gets.back().used_until = std::max(span.begin, reader.gets.back().wait.end);
      reader.gets.push_back({span, -1, integer_field(*event.args, "epoch"),
                             integer_field(*event.args, "batch"),
                             static_cast<std::uint64_t>(
                                 std::max<std::int64_t>(0, integer_field(*event.args, "bytes"))),
                             text_field(*event.args, "end") == "failed"});
    }
  }
  for (auto& [key, reader] : readers) {
    std::tie(reader.view, reader.world, reader.rank) = key;
    line.readers.push_back(std::move(reader));
  }
  return line;
}

std::vector<double> under_way(const std::vector<Timeline::Span>& spans, double seconds,
                              std::size_t bins) {
  std::vector<double> busy(bins, 0.0);
  if (!(seconds > 0) || bins == 0) return busy;
  const double width = seconds / static_cast<double>(bins);
  for (const Timeline::Span& span : spans) {
    const auto bin_at = [&](double time) {
      return std::min(bins - 1, static_cast<std::size_t>(std::max(0.0, time) / width));
    };
    for (std::size_t i = bin_at(span.begin); i <= bin_at(span.end); ++i) {
      const double from = static_cast<double>(i) * width;
      busy[i] +=
          std::max(0.0, std::min(span.end, from + width) - std::max(span.begin, from)) / width;
    }
  }
  return busy;
}

}  // namespace batchfs
