// batchfs check: reads every stored chunk, shard index and checksum, and lists the broken ones.

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/scan/source_versions.h"
#include "engine/scan/verify.h"
#include "engine/scan/verify_part.h"
#include "engine/store/fingerprint.h"
#include "engine/store/output/output_store.h"
#include "engine/view/describe/resolved.h"
#include "engine/write/run_identity.h"
#include "tools/cli/command.h"
#include "tools/cli/groups.h"
#include "tools/cli/interruption.h"
#include "tools/cli/progress.h"
#include "tools/cli/text.h"
#include "tools/cli/view_options.h"
#include "tools/tasks/task_run.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxListed = 1000;  // findings, and notes, that are kept

struct VerifyCommandOptions {
  StoreOptions store;
  std::string view;
  TaskRunOptions run;
};

std::string array_name(const std::string& path) { return path.empty() ? "/" : path; }

/// `origin`: the store's URL and the view.
Json document(const VerifyReport& report, const Json& origin, const VerifyCommandOptions& options) {
  Json findings = Json::array(), notes = Json::array(), not_checked = Json::array();
  for (const Finding& f : report.findings)
    findings.push_back(
        {{"array", f.array}, {"chunk", f.chunk}, {"key", f.key}, {"what", f.what}, {"why", f.why}});
  for (const VerifyNote& note : report.notes)
    notes.push_back({{"key", note.key}, {"why", note.why}});
  for (const VerifyNote& note : report.not_checked)
    not_checked.push_back({{"name", note.key}, {"why", note.why}});
  Json json = {{"store", origin.at("store")},
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
  if (origin.contains("view")) json["view"] = origin.at("view");
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

/// With a cache, the cache would answer instead of the store, and fill with all of it.
StoreOptions direct(const VerifyCommandOptions& options) {
  StoreOptions store = options.store;
  store.config.cache_dir.clear();
  return store;
}

/// The store and the view of the command line, opened.
struct VerifyScan {
  /// `opened` and its view, if the command line names one.
  explicit VerifyScan(const VerifyCommandOptions& options, const DecodedViews* opened = nullptr,
                      const View* view = nullptr) {
    Json of = {{"command", "check"}, {"version", 2}};
    if (view == nullptr) {
      const OpenedStore whole = open_zarr(direct(options));
      store = whole.store;
      of["snapshot"] = whole.snapshot_id();
      of["group"] = whole.group;
      for (const auto& [key, why] : whole.hierarchy->problems)
        if (is_in_group(key, whole.group)) problems.push_back({key, why});
      for (const auto& [path, array] : whole.hierarchy->arrays)
        if (is_in_group(path, whole.group))
          targets.push_back(
              {std::shared_ptr<const ArrayMetadata>(whole.hierarchy, &array), std::nullopt});
    } else {
      store = opened->opened.store;
      // Each view of a mixture is of one store.
      if (opened->is_mixture && !view->variables().empty())
        for (const auto& other : opened->opened.stores())
          if (other.get() == &view->variables().front()->array->store()) store = other;
      of["snapshot"] = opened->opened.snapshot_id();
      of["view"] = fingerprint(resolved_view(*view).dump());
      for (const Variable* variable : view->variables())
        if (&variable->array->store() != store.get())
          throw Error(ErrorCode::not_supported,
                      fmt::format("'{}' is of another store than the first, and one store is "
                                  "checked at a time: batchfs check {}",
                                  variable->name, printable(variable->array->store().url())),
                      options.view);
      for (std::uint32_t v = 0; v < view->variables().size(); ++v)
        targets.push_back(selected_chunks(*view, v));
    }
    of["store"] = place_digest(*store);
    // One process reports each object in its current version; the report of several is of one
    // version.
    if (options.run.is_task() || options.run.merges()) {
      source.emplace(view == nullptr ? whole_arrays() : source_arrays(*view),
                     SourceVersions::Options{options.store.threads, true});
      of["source"] = source->digests();
    }
    identity = std::move(of);
    origin = {{"store", store->url()}};
    if (!options.view.empty()) origin["view"] = options.view;
  }

  void read(const VerifyOptions& asked, VerifyCollector& collector) const {
    if (asked.task == 0)
      for (const auto& [key, why] : problems) {
        collector.find({"", "", key, damage::kMetadata, why});
        collector.not_checked(key, why);
      }
    verify_arrays(store, targets, asked, collector);
  }

  /// All that can be read.
  std::vector<SourceArray> whole_arrays() const {
    std::vector<SourceArray> arrays;
    for (const VerifyTarget& target : targets) {
      const std::string& path = target.metadata->path;
      if (target.metadata->unsupported.empty())
        arrays.push_back({.name = path.empty() ? "/" : path,
                          .store = store.get(),
                          .metadata = target.metadata,
                          .lists = store->can_list() && !store->revision()});
    }
    return arrays;
  }

  std::shared_ptr<Store> store;
  std::vector<VerifyTarget> targets;
  std::vector<VerifyNote> problems;      // of the metadata
  std::optional<SourceVersions> source;  // of a task
  Json identity;                         // names the run in the folder of its parts
  Json origin;                           // the store's URL and the view
};

/// Throws if the printed report has problems.
void end_report(const VerifyReport& report, const Json& origin, Output& output) {
  if (report.problems == 0 && !report.interrupted) return;
  output.finish();
  const std::string found = report.problems == 1
                                ? "1 problem was found"
                                : format_count(report.problems) + " problems were found";
  const std::string url = origin.at("store").get<std::string>();
  if (report.interrupted)
    throw Error(
        ErrorCode::interrupted,
        fmt::format("interrupted after {} chunks; {} so far", format_count(report.chunks), found),
        url);
  throw Error(ErrorCode::corrupt, found + ", see the list", url);
}

/// Prints the report; throws if it has problems.
void write_report(const VerifyReport& report, const Json& origin,
                  const VerifyCommandOptions& options, Output& output) {
  output.write(options.run.task.json ? json_text(document(report, origin, options)) + "\n"
                                     : report_text(report, options));
  end_report(report, origin, output);
}

/// The views of a mixture, one after the other.
void check_mixture(const VerifyCommandOptions& options, const DecodedViews& opened,
                   VerifyOptions& asked, Interruption& interruption, Output& output) {
  if (options.run.is_task())
    throw Error(ErrorCode::not_supported,
                "a mixture is read by one process; share each of its views among tasks",
                options.view);
  interruption.guard();
  Json all = Json::object();
  std::string text;
  std::vector<VerifyReport> reports;
  Json origin;  // of the first view with problems
  bool broken = false;
  for (const auto& [name, view] : opened.views) {
    if (interruption.requested()) break;
    const VerifyScan scan(options, &opened, view.get());
    VerifyCollector collector(kMaxListed);
    Progress progress("checking " + name);
    asked.progress = [&](std::int64_t done, std::int64_t count) { progress.show(done, count); };
    scan.read(asked, collector);
    reports.push_back(collector.report());
    all[name] = document(reports.back(), scan.origin, options);
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", printable(name),
                        report_text(reports.back(), options));
    if (!broken) origin = scan.origin;
    broken = broken || reports.back().problems > 0;
  }
  output.write(options.run.task.json ? json_text(Json{{"mix", std::move(all)}}) + "\n" : text);
  end_report(merge_reports(reports, kMaxListed), origin, output);
}

/// The view of the command line.
std::optional<DecodedViews> open(const VerifyCommandOptions& options) {
  if (options.view.empty()) return std::nullopt;
  // All parts of a split have one selection.
  DecodedViews opened = open_decoded(direct(options), options.view);
  if (opened.is_mixture && options.run.merges())
    throw Error(ErrorCode::not_supported, "a mixture is read by one process, not by tasks",
                options.view);
  return opened;
}

const View* first_of(const std::optional<DecodedViews>& opened) {
  return opened ? opened->views.front().view.get() : nullptr;
}

void merge_checks(const VerifyCommandOptions& options, Output& output) {
  std::optional<Json> identity;
  if (!options.store.store.empty()) {
    const std::optional<DecodedViews> opened = open(options);
    identity = VerifyScan(options, opened ? &*opened : nullptr, first_of(opened)).identity;
  }
  const std::string where = shown_output(options.run.merge);
  Json origin;
  std::vector<VerifyReport> reports;
  merge_tasks(options.run, "check", std::move(identity), options.store.config,
              [&](std::string_view result) {
                const Json part = parse_json(result, where);
                const JsonRef root(part, where);
                const JsonRef of = root.at("origin");
                static_cast<void>(of.at("store").string());
                if (reports.empty()) origin = of.value();
                reports.push_back(parse_verify_part(root.at("report")));
              });
  write_report(merge_reports(reports, kMaxListed), origin, options, output);
}

void check(const VerifyCommandOptions& options, Output& output) {
  check_task_run(options.run, {{"STORE", options.store.store}});
  const bool has_cache = !options.store.config.cache_dir.empty();
  if (has_cache && (options.run.is_task() || options.run.merges()))
    throw UsageError{
        "--cache-dir cannot be combined with tasks: check each machine's cache by itself"};
  if (options.run.merges()) return merge_checks(options, output);
  Interruption interruption;
  VerifyCollector collector(kMaxListed);
  VerifyOptions asked{.threads = options.store.threads, .memory = options.store.memory};
  asked.task = options.run.task.task;
  asked.tasks = options.run.task.tasks;
  asked.cancelled = [&] { return interruption.requested(); };
  const std::optional<DecodedViews> opened = open(options);
  if (opened && opened->is_mixture) {
    if (has_cache)
      throw UsageError{"--cache-dir cannot be combined with a mixture: check the cache by itself"};
    return check_mixture(options, *opened, asked, interruption, output);
  }
  const VerifyScan scan(options, opened ? &*opened : nullptr, first_of(opened));
  const auto read = [&] {
    interruption.guard();  // opening may hang: until here a signal ends the process
    Progress progress("checking");
    asked.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
    scan.read(asked, collector);
  };
  if (options.run.is_task())
    return do_task(
        options.run, scan.identity, {scan.store->url()}, options.store.config, output, [&] {
          read();
          const VerifyReport report = collector.report();
          if (report.interrupted) end_interrupted(output, shown_output(options.run.task.output));
          scan.source->confirm();
          return json_text({{"origin", scan.origin}, {"report", verify_part(report)}}, -1);
        });
  read();
  if (has_cache && !interruption.requested()) {
    Progress progress("checking the cache");
    asked.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
    verify_cache(options.store.config.cache_dir, asked, collector);
  }
  write_report(collector.report(), scan.origin, options, output);
}

}  // namespace

CommandAction setup_check(CLI::App& app) {
  const auto options = std::make_shared<VerifyCommandOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.get_option("--cache-dir")
      ->description("check the entries of the cache in this directory, too");
  app.add_option("--view", options->view,
                 "check only the chunks that this view selects; - reads it from standard input")
      ->type_name("FILE");
  add_task_run_options(app, options->run);
  require_unless_merged(app, {"STORE"});
  return [options](Output& output) { check(*options, output); };
}

}  // namespace batchfs
