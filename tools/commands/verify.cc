// batchfs check: reads every stored chunk, shard index and checksum, and lists the broken ones.

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/scan/verify.h"
#include "tools/cli/command.h"
#include "tools/cli/groups.h"
#include "tools/cli/interruption.h"
#include "tools/cli/progress.h"
#include "tools/cli/text.h"
#include "tools/cli/view_options.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxListed = 1000;  // findings, and notes, that are kept

struct VerifyCommandOptions {
  StoreOptions store;
  std::string view;
  bool json = false;
};

std::string array_name(const std::string& path) { return path.empty() ? "/" : path; }

Json document(const VerifyReport& report, const std::string& url,
              const VerifyCommandOptions& options) {
  Json findings = Json::array(), notes = Json::array(), not_checked = Json::array();
  for (const Finding& f : report.findings)
    findings.push_back(
        {{"array", f.array}, {"chunk", f.chunk}, {"key", f.key}, {"what", f.what}, {"why", f.why}});
  for (const VerifyNote& note : report.notes)
    notes.push_back({{"key", note.key}, {"why", note.why}});
  for (const VerifyNote& note : report.not_checked)
    not_checked.push_back({{"name", note.key}, {"why", note.why}});
  Json json = {{"store", url},
               {"interrupted", report.interrupted},
               {"arrays", report.arrays},
               {"objects", report.objects},
               {"chunks", report.chunks},
               {"missing_chunks", report.missing_chunks},
               {"stored_bytes", report.stored_bytes},
               {"decoded_bytes", report.decoded_bytes},
               {"problems", report.problems},
               {"findings", findings},
               {"findings_not_listed", report.problems - report.findings.size()},
               {"not_checked", not_checked},
               {"notes", notes},
               {"notes_not_listed", report.note_count - report.notes.size()}};
  if (!options.view.empty()) json["view"] = options.view;
  if (!options.store.config.cache_dir.empty()) {
    json["cache_entries"] = report.cache_entries;
    json["cache_bytes"] = report.cache_bytes;
  }
  return json;
}

void add_notes(std::string& text, const std::string& heading, const std::vector<VerifyNote>& notes,
               std::uint64_t count) {
  if (count == 0) return;
  text += heading + ":\n";
  for (const VerifyNote& note : notes)
    text += fmt::format("  {}: {}\n", printable(note.key), printable(note.why));
  if (count > notes.size())
    text += fmt::format("  and {} more\n", format_count(count - notes.size()));
}

std::string report_text(const VerifyReport& report, const VerifyCommandOptions& options) {
  std::string text;
  if (report.problems > 0) {
    Table table({"array", "chunk", "what", "why", "object"});
    for (const Finding& f : report.findings) {
      const bool is_cache = f.what == damage::kCacheEntry;
      table.add({is_cache ? "-" : printable(array_name(f.array)), f.chunk.empty() ? "-" : f.chunk,
                 f.what, printable(f.why), printable(f.key)});
    }
    text += "broken:\n" + table.text();
    if (report.problems > report.findings.size())
      text +=
          fmt::format("  and {} more\n", format_count(report.problems - report.findings.size()));
  }
  add_notes(text, "not checked", report.not_checked, report.not_checked.size());
  add_notes(text, "no part of an array", report.notes, report.note_count);
  text += fmt::format(
      "{} chunks of {} arrays in {} objects, {} stored, {} decoded; {} missing chunks (fill "
      "values)\n",
      format_count(report.chunks), format_count(report.arrays), format_count(report.objects),
      format_size(report.stored_bytes), format_size(report.decoded_bytes),
      format_count(report.missing_chunks));
  if (!options.store.config.cache_dir.empty())
    text += fmt::format("{} cache entries, {}\n", format_count(report.cache_entries),
                        format_size(report.cache_bytes));
  if (report.problems == 0 && !report.interrupted) text += "no problems found\n";
  return text;
}

/// Returns the store's URL.
std::string verify_store(const VerifyCommandOptions& options, const VerifyOptions& asked,
                         Interruption& interruption, VerifyCollector& collector) {
  // The cache would answer in place of the store, and be filled with all of it.
  StoreOptions direct = options.store;
  direct.config.cache_dir.clear();
  std::vector<VerifyTarget> targets;
  std::shared_ptr<Store> store;
  if (options.view.empty()) {
    const OpenedStore opened = open_zarr(direct);
    store = opened.store;
    for (const auto& [key, why] : opened.hierarchy->problems) {
      if (!is_in_group(key, opened.group)) continue;
      collector.find({"", "", key, damage::kMetadata, why});
      collector.not_checked(key, why);
    }
    for (const auto& [path, array] : opened.hierarchy->arrays)
      if (is_in_group(path, opened.group))
        targets.push_back(
            {std::shared_ptr<const ArrayMetadata>(opened.hierarchy, &array), std::nullopt});
  } else {
    // All parts of a split have one selection.
    const OpenedView opened =
        open_view(direct, options.view, {.as_decoded = true, .first_part = true});
    store = opened.opened.store;
    for (const Variable* variable : opened.view->variables())
      if (&variable->array->store() != store.get())
        throw Error(ErrorCode::not_supported,
                    fmt::format("'{}' is of another store than the first, and one store is checked "
                                "at a time: batchfs check {}",
                                variable->name, printable(variable->array->store().url())),
                    options.view);
    for (std::uint32_t v = 0; v < opened.view->variables().size(); ++v)
      targets.push_back(selected_chunks(*opened.view, v));
  }
  interruption.guard();  // opening may hang: until here a signal ends the process
  verify_arrays(store, targets, asked, collector);
  return store->url();
}

void check(const VerifyCommandOptions& options, Output& output) {
  Interruption interruption;
  VerifyCollector collector(kMaxListed);
  VerifyOptions asked{.threads = options.store.threads, .memory = options.store.memory};
  asked.cancelled = [&] { return interruption.requested(); };
  std::string url;
  {
    Progress progress("checking");
    asked.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
    url = verify_store(options, asked, interruption, collector);
  }
  if (!options.store.config.cache_dir.empty() && !interruption.requested()) {
    Progress progress("checking the cache");
    asked.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
    verify_cache(options.store.config.cache_dir, asked, collector);
  }
  const VerifyReport report = collector.report();
  output.write(options.json ? json_text(document(report, url, options)) + "\n"
                            : report_text(report, options));
  if (report.problems == 0 && !report.interrupted) return;
  output.finish();
  const std::string found = report.problems == 1
                                ? "1 problem was found"
                                : format_count(report.problems) + " problems were found";
  if (report.interrupted)
    throw Error(
        ErrorCode::interrupted,
        fmt::format("interrupted after {} chunks; {} so far", format_count(report.chunks), found),
        url);
  throw Error(ErrorCode::corrupt, found + ", see the list", url);
}

}  // namespace

CommandAction setup_check(CLI::App& app) {
  const auto options = std::make_shared<VerifyCommandOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.get_option("--cache-dir")
      ->description("check the entries of the cache in this directory, too");
  app.add_option("--view", options->view, "check only the chunks that this view selects")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "write JSON, for programs");
  return [options](Output& output) { check(*options, output); };
}

}  // namespace batchfs
