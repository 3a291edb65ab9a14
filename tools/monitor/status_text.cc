#include "tools/monitor/status_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "tools/cli/json_fields.h"
#include "tools/cli/text.h"
#include "tools/cli/text_layout.h"
#include "tools/monitor/activity.h"
#include "tools/monitor/top_screen.h"

namespace batchfs {

namespace {

/// "of 4.0 GB"; sizes from 2^62 on mean no limit.
std::string limit_text(std::uint64_t bytes) {
  return bytes >= std::uint64_t{1} << 62 ? "no limit" : "of " + format_size(bytes);
}

std::string count_text(const Json& json, const char* key, const char* what) {
  return format_count(count_field(json, key)) + " " + what;
}

std::string size_text(const Json& json, const char* key, const char* what) {
  return format_size(count_field(json, key)) + " " + what;
}

std::vector<std::string> store_words(const Json& status) {
  std::vector<std::string> words{size_text(status, "bytes_fetched", "fetched")};
  const Json& store = object_field(status, "store");
  if (count_field(store, "requests") == 0) return words;
  words.push_back(count_text(store, "requests", "requests"));
  for (const auto& [key, what] : {std::pair{"retries", "repeated"},
                                  {"hedges", "hedged"},
                                  {"throttled", "rejected as too many"},
                                  {"failures", "failed"}})
    if (count_field(store, key) > 0) words.push_back(count_text(store, key, what));
  if (store.contains("disk_cache_hits"))
    words.push_back(count_text(store, "disk_cache_hits", "found in --cache-dir"));
  return words;
}

/// Use of shared caches. Requests to caches that do not report hits count as neither hits nor
/// misses.
std::vector<std::string> via_words(const Json& store) {
  std::vector<std::string> words{size_text(store, "via_bytes", "received"),
                                 count_text(store, "via_requests", "requests")};
  for (const auto& [key, what] : {std::pair{"via_hits", "hits"},
                                  {"via_misses", "misses"},
                                  {"via_fallbacks", "asked of the store instead"},
                                  {"via_outdated", "outdated"},
                                  {"via_damaged", "damaged"},
                                  {"via_failures", "failed"}})
    if (count_field(store, key) > 0) words.push_back(count_text(store, key, what));
  return words;
}

std::vector<std::string> memory_words(const Json& status) {
  std::vector<std::string> words{format_size(count_field(status, "memory_used")) + " " +
                                 limit_text(count_field(status, "memory_budget"))};
  words.push_back(size_text(status, "chunk_cache_bytes", "of decoded chunks"));
  if (count_field(status, "memory_mapped_after_close") > 0)
    words.push_back(size_text(status, "memory_mapped_after_close", "mapped by readers"));
  words.push_back(size_text(status, "memory_resident", "in the process"));
  const Json& group = object_field(status, "cgroup");
  if (const std::uint64_t limit = count_field(group, "memory_limit");
      limit > 0 && limit < std::uint64_t{1} << 62)
    words.push_back(fmt::format("the control group uses {} of {}",
                                format_size(count_field(group, "memory_used")),
                                format_size(limit)));
  return words;
}

std::vector<std::string> wait_words(const Json& status) {
  const Json& waits = object_field(status, "wait_seconds");
  std::vector<std::string> words{count_text(waits, "count", "batches asked for")};
  if (count_field(waits, "count") > 0) {
    words.push_back("median " + duration_text(number_field(waits, "p50")));
    words.push_back("99 % within " + duration_text(number_field(waits, "p99")));
    words.push_back(duration_text(number_field(waits, "sum")) + " in all");
  }
  if (const auto waiting = count_field(status, "readers_waiting"); waiting > 0)
    words.push_back(counted(static_cast<std::int64_t>(waiting), "reader") + " waiting now");
  return words;
}

}  // namespace

std::string status_text(const Json& status, const Json& config, const std::string& place,
                        std::size_t columns) {
  const Json& handoff = object_field(status, "handoff");
  std::string out = printable(place);
  if (const std::string store = text_field(config, "store"); !store.empty())
    out += "  " + printable(store);
  out += "\n";
  constexpr std::size_t kLabel = 9;
  const auto line = [&](const std::string& label, const std::vector<std::string>& words) {
    // Fills as if the label were part of the first piece: continued lines begin below it.
    std::string text = filled(words, kLabel, columns);
    text.replace(0, label.size(), label);
    out += text;
  };
  std::vector<std::string> up{uptime_text(number_field(status, "uptime_seconds")),
                              "pid " + std::to_string(integer_field(status, "pid")),
                              counted(integer_field(status, "threads"), "thread")};
  if (status.is_object() && status.value("passthrough", Json()) == Json(true))
    up.emplace_back("passthrough");
  line("up", up);
  line("store", store_words(status));
  if (const Json& store = object_field(status, "store"); store.contains("via_requests"))
    line("caches", via_words(store));
  line("chunks", {count_text(status, "chunks_decoded", "decoded"),
                  size_text(status, "bytes_decoded", "in all"),
                  count_text(status, "chunk_cache_hits", "more found in memory"),
                  count_text(status, "chunk_cache_evictions", "dropped")});
  line("batches", {count_text(status, "batches_assembled", "assembled"),
                   count_text(status, "batches_opened", "opened"),
                   size_text(status, "bytes_delivered", "delivered")});
  line("waits", wait_words(status));
  line("memory", memory_words(status));
  if (!handoff.empty())
    line("hand-off",
         {counted(integer_field(handoff, "readers"), "reader"),
          count_text(handoff, "batches", "batches"), count_text(handoff, "leases", "held now"),
          size_text(handoff, "memory_bytes", "of them")});
  for (const Json& gpu : list_field(handoff, "gpus"))
    if (gpu.is_object())
      line("GPU", {printable(text_field(gpu, "name")), count_text(gpu, "batches", "batches"),
                   format_size(count_field(gpu, "memory_used")) + " " +
                       limit_text(count_field(gpu, "memory_limit"))});
  const std::uint64_t errors = count_field(status, "errors");
  line("errors", {errors == 0 ? "none" : format_count(errors) + "; `batchfs log` says which"});
  const std::vector<Activity::Reader> readers = recent_readers(status);
  if (readers.empty()) return out + "\nNo batch was read yet.\n";
  out += "\n";
  for (const std::string& row : reader_lines(readers, readers.size(), columns)) out += row + "\n";
  return out;
}

}  // namespace batchfs
