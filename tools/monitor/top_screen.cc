#include "tools/monitor/top_screen.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/base/utf8.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

std::string store_line(const Activity& a) {
  if (!a.remote) return fmt::format("Store    {} read, on this machine", rate_text(a.fetched));
  std::string line = fmt::format("Store    {}  {:.0f} requests/s  in flight {} of {}",
                                 rate_text(a.received), a.requests, a.in_flight, a.limit);
  if (a.waiting > 0) line += fmt::format(", {} wait", a.waiting);
  line += fmt::format("  retries {}  hedges {}  failures {}", a.retries, a.hedges, a.failures);
  if (a.disk_cache) line += fmt::format("  disk cache {}", percent_text(a.disk_hits));
  return line;
}

std::string via_line(const Activity& a) {
  return fmt::format("Caches   {}  {:.0f} requests/s{}  fallbacks {}  failures {}",
                     rate_text(a.via_received), a.via_requests,
                     a.via_hits ? fmt::format("  hits {}", percent_text(*a.via_hits)) : "",
                     a.via_fallbacks, a.via_failures);
}

std::string memory_line(const Activity& a) {
  const double budget = std::max<double>(1, static_cast<double>(a.memory_budget));
  return fmt::format("Memory   {} of {} ({})  chunks {}  process {}", format_size(a.memory_used),
                     format_size(a.memory_budget),
                     percent_text(static_cast<double>(a.memory_used) / budget),
                     format_size(a.chunk_cache), format_size(a.memory_resident));
}

struct Column {
  const char* heading;
  std::string (*text)(const Activity::Reader&);
  int spared = 0;  // if the terminal is too narrow for all: 1 is left out first; 0 never
};
constexpr Column kColumns[] = {
    {"READER",
     [](const Activity::Reader& r) {
       return printable(r.view) + " (" + printable(r.format) + ")";
     }},
    {"RANK", [](const Activity::Reader& r) { return fmt::format("{}/{}", r.rank, r.world); }},
    {"EPOCH", [](const Activity::Reader& r) { return std::to_string(r.epoch); }, 4},
    {"BATCH",
     [](const Activity::Reader& r) { return fmt::format("{}/{}", r.batch, r.epoch_batches); }},
    {"BATCH/S", [](const Activity::Reader& r) { return fmt::format("{:.1f}", r.batches); }},
    {"RATE", [](const Activity::Reader& r) { return rate_text(r.bytes); }},
    {"WAITS", [](const Activity::Reader& r) { return percent_text(r.wait_share); }},
    {"P50", [](const Activity::Reader& r) { return duration_text(r.median); }, 2},
    {"P99", [](const Activity::Reader& r) { return duration_text(r.p99); }},
    {"AHEAD", [](const Activity::Reader& r) { return std::to_string(r.prefetch); }, 3},
    {"IDLE",
     [](const Activity::Reader& r) { return r.idle < 2 ? std::string() : duration_text(r.idle); },
     1},
    {"FAILED", [](const Activity::Reader& r) { return std::to_string(r.failures); }},
};

std::vector<std::string> table_of(const std::vector<Activity::Reader>& readers, std::size_t most,
                                  int spared) {
  std::vector<std::string> heading;
  for (const Column& column : kColumns)
    if (column.spared == 0 || column.spared > spared) heading.emplace_back(column.heading);
  Table table(heading);
  for (std::size_t i = 0; i < std::min(most, readers.size()); ++i) {
    std::vector<std::string> row;
    for (const Column& column : kColumns)
      if (column.spared == 0 || column.spared > spared) row.push_back(column.text(readers[i]));
    table.add(std::move(row));
  }
  std::vector<std::string> lines = split(table.text(0), '\n');
  std::erase(lines, "");
  return lines;
}

}  // namespace

std::string rate_text(double bytes) {
  return format_size(static_cast<std::uint64_t>(std::max(0.0, bytes))) + "/s";
}

std::string uptime_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e12));
  const std::string clock = fmt::format("{}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
  return s >= 86400 ? fmt::format("{} d {}", s / 86400, clock) : clock;
}

std::vector<std::string> reader_lines(const std::vector<Activity::Reader>& readers,
                                      std::size_t most, std::size_t columns) {
  for (int spared = 0;; ++spared) {
    std::vector<std::string> lines = table_of(readers, most, spared);
    const bool fits = std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return cut_to(line, columns) == line;
    });
    if (columns == 0 || fits || spared == static_cast<int>(std::size(kColumns))) return lines;
  }
}

std::string duration_text(double seconds) {
  if (!(seconds > 0)) return "0";
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.01 ? 1 : 0);
  if (seconds < 100) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0);
  return uptime_text(seconds);
}

std::string cut_to(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_utf8_tail(text[i]) && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

std::vector<std::string> top_screen(const Activity& a, const std::string& title,
                                    std::size_t columns, std::size_t rows) {
  std::vector<std::string> lines{
      fmt::format("batchfs top  {}  up {}  pid {}", printable(title), uptime_text(a.uptime), a.pid),
      store_line(a),
      fmt::format("Decode   {}  {:.0f} chunks/s  {} threads  {} of chunks were in memory",
                  rate_text(a.decoded), a.chunks, a.threads, percent_text(a.cache_hits)),
      fmt::format("Batches  {:.1f}/s  {}{}{}", a.batches, rate_text(a.delivered),
                  a.passthrough ? "  passthrough" : "",
                  a.handoff_readers > 0 ? fmt::format("  {} by hand-off", a.handoff_readers) : ""),
      memory_line(a),
  };
  if (a.shared_caches) lines.insert(lines.begin() + 2, via_line(a));
  for (const Activity::Gpu& gpu : a.gpus)
    lines.push_back(fmt::format("GPU      {} of {}  {}", format_size(gpu.used),
                                format_size(gpu.memory), printable(gpu.name)));
  lines.push_back(fmt::format("Errors   {}", a.errors) +
                  (a.errors > 0 ? "  (.batchfs/log says which)" : ""));
  lines.emplace_back();
  const std::size_t room = rows == 0                 ? a.readers.size()
                           : rows > lines.size() + 2 ? rows - lines.size() - 2
                                                     : 0;
  if (a.readers.empty()) {
    lines.emplace_back("No batch was read yet.");
  } else {
    for (std::string& line : reader_lines(a.readers, room, columns))
      lines.push_back(std::move(line));
    if (a.readers.size() > room)
      lines.push_back(fmt::format("and {} more", a.readers.size() - room));
  }
  if (rows != 0 && lines.size() > rows) lines.resize(rows);
  if (columns != 0)
    for (std::string& line : lines) line = cut_to(line, columns);
  return lines;
}

}  // namespace batchfs
