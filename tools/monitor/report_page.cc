#include "tools/monitor/report_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/samples/duration.h"
#include "tools/monitor/report_pictures.h"
#include "tools/monitor/top_screen.h"
#include "tools/page/html.h"
#include "tools/show/view_section.h"

namespace batchfs {

namespace {

constexpr const char* kReportStyle = R"(
:root { --wait: #d1495b; --use: #7fb685; --idle: #b9c2cb; --fetch: #3d7ea6; --decode: #e0a030; }
@media screen and (prefers-color-scheme: dark) { :root { --idle: #4b5661; } }
tr.idle td { color: var(--soft); } svg { min-width: 600px; max-width: 960px; }
.wait { fill: var(--wait); } .use { fill: var(--use); } .idle { fill: var(--idle); } .fetch { fill: var(--fetch); } .decode { fill: var(--decode); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 0; } .key + span { margin-right: 1.2em; }
@media print { svg { min-width: 0; } }
)";

std::string row(const std::string& name, const std::string& value) {
  return "<tr><td>" + html(name) + "</td><td class=\"n\">" + html(value) + "</td></tr>\n";
}

std::string rate(double bytes) {
  return format_size(static_cast<std::uint64_t>(std::max(0.0, bytes))) + "/s";
}

std::string times(double factor) {
  return factor > 0 ? fmt::format("{:.2f}", factor) : "not known";
}

std::string via_words(const Activity& a) {
  const std::string hits = a.via_hits ? fmt::format(", {:.0f} % hits", 100 * *a.via_hits) : "";
  return fmt::format("{:.0f}/s, {}{}, {} asked of the store instead, {} failed", a.via_requests,
                     rate(a.via_received), hits, a.via_fallbacks, a.via_failures);
}

std::string figures(const Report& r) {
  const Activity& a = r.activity;
  std::string rows =
      row("Batches given", fmt::format("{:.1f}/s, {}", a.batches, rate(a.delivered)));
  rows += row("Fetched", rate(a.fetched)) + row("Decoded", rate(a.decoded));
  rows += row("Bytes decoded for each byte used", times(r.decode_amplification));
  rows += row("Bytes fetched for each byte used", times(r.fetch_amplification));
  rows += row("Chunks found in memory", fmt::format("{:.0f} %", 100 * a.cache_hits));
  rows += row("Threads", std::to_string(a.threads));
  rows += row("Memory",
              fmt::format("{} of {}", format_size(a.memory_used), format_size(a.memory_budget)));
  rows += row("Read by", a.passthrough ? "the kernel (passthrough)" : "batchfs");
  if (a.remote)
    rows += row("Requests",
                fmt::format("{:.0f}/s, {} repeated, {} failed", a.requests, a.retries, a.failures));
  if (a.shared_caches) rows += row("Through shared caches", via_words(a));
  rows += row("Errors", format_count(a.errors));
  return "<div class=\"wide\"><table>" + rows + "</table></div>\n";
}

std::string readers_table(const Activity& a) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>Reader</th><th class=\"n\">Rank</th><th "
      "class=\"n\">Epoch</th><th "
      "class=\"n\">Batch</th>"
      "<th class=\"n\">Batches/s</th><th class=\"n\">Rate</th><th class=\"n\">Waited</th>"
      "<th class=\"n\">Median wait</th><th class=\"n\">99 % below</th><th "
      "class=\"n\">State</th></tr>\n";
  for (const Activity::Reader& r : a.readers) {
    const bool idle = r.idle > kIdleSeconds;
    text += std::string(idle ? "<tr class=\"idle\">" : "<tr>") + "<td>" +
            html(r.view + " (" + r.format + ")") + "</td>";
    for (const std::string& cell :
         {fmt::format("{} of {}", r.rank, r.world), std::to_string(r.epoch),
          fmt::format("{} of {}", r.batch, r.epoch_batches), fmt::format("{:.1f}", r.batches),
          rate(r.bytes), fmt::format("{:.0f} %", 100 * r.wait_share), duration_text(r.median),
          duration_text(r.p99), idle ? "idle for " + duration_text(r.idle) : std::string("reads")})
      text += "<td class=\"n\">" + html(cell) + "</td>";
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string key(const char* kind, const char* name) {
  return fmt::format("<span class=\"key\" style=\"background: var(--{})\"></span><span>{}</span>\n",
                     kind, name);
}

}  // namespace

std::string report_page(const Report& r) {
  std::string page = page_begin("batchfs: " + r.place, std::string(kReportStyle) + kViewStyle);
  page += "<h1>Where readers wait: " + html(r.place) + "</h1>\n<p class=\"of\">" + html(r.store) +
          " &middot; " + html(r.made) +
          fmt::format(
              " &middot; pictures: the last {:.0f} s &middot; figures: since the start, {} "
              "ago</p>\n",
              r.timeline.seconds, html(duration_text(r.activity.uptime)));
  page += "<h2>Advice</h2>\n<ul>\n";
  for (const std::string& sentence : r.advice) page += "<li>" + html(sentence) + "</li>\n";
  page += "</ul>\n<h2>Getting batches and using them</h2>\n<p class=\"of\">" +
          key("wait", "waits for a batch") + key("use", "uses it") + key("idle", "idle") +
          "</p>\n" + readers_picture(r.timeline);
  page += "<h2>Work in the same time</h2>\n<p class=\"of\">" + key("fetch", "fetches under way") +
          key("decode", "threads that decode") + "</p>\n" + work_picture(r.timeline);
  page += "<h2>Waits for batches</h2>\n" + waits_picture(r.timeline);
  page += "<h2>Throughput</h2>\n" + throughput_picture(r.timeline);
  page += "<h2>Readers</h2>\n" + readers_table(r.activity) + "<h2>Figures</h2>\n" + figures(r);
  if (!r.batch.empty()) page += "<h2>A batch</h2>\n" + r.batch;
  return page + page_end();
}

}  // namespace batchfs
