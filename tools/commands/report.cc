// batchfs report: a page that shows what readers waited for in the last minute, with advice.

#include <memory>
#include <thread>

#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/pipeline/engine.h"
#include "tools/cli/command.h"
#include "tools/cli/samples.h"
#include "tools/cli/store_options.h"
#include "tools/cli/view_memory.h"
#include "tools/cli/view_options.h"
#include "tools/cli/whole_file.h"
#include "tools/monitor/report_page.h"
#include "tools/monitor/wait_advice.h"
#include "tools/page/html.h"
#include "tools/service/served_store.h"
#include "tools/service/state_source.h"
#include "tools/show/view_section.h"

namespace batchfs {

namespace {

struct ReportOptions {
  std::string place, output;
  StoreOptions store;  // for the picture of a batch
  bool batch = false;
};

/// The first batch of a served view: of the first reader's, if it is among them. Opens the store
/// and reads the batch; shows an error in its place.
std::string batch_part(const ReportOptions& options, const Activity& activity) try {
  const std::optional<ServedStore> served = served_store(options.place);
  StoreOptions asked = options.store;
  served->complete(asked);
  OpenedStore opened = open_zarr(asked);
  Log log;
  Engine engine({.threads = asked.threads,
                 .memory = opened.budget,
                 .prefetch = false,
                 .store = opened.store,
                 .held = opened.held_memory()},
                log);
  for (const auto& store : opened.stores()) engine.add_store(store);
  GroupDatasets datasets(opened);
  std::shared_ptr<const View> chosen;
  std::string chosen_file;
  for (const std::string& file : served->views) {
    if (file == "-") continue;  // standard input of another process
    for (const auto& view : load_parts(datasets, file)) {
      const bool is_read =
          !activity.readers.empty() && activity.readers.front().view == view->name();
      if (chosen != nullptr && !is_read) continue;
      chosen = view;
      chosen_file = file;
      if (is_read) break;
    }
  }
  if (chosen == nullptr) throw Error(ErrorCode::not_found, "no view of it is in a file");
  const auto held = engine.hold(HeldByViews({chosen}).bytes());
  const ShownView shown =
      look_at_view(engine, find_samples(chosen, opened, asked, engine, log), chosen_file);
  return view_section(shown, "batch");
} catch (const Error& error) {
  return "<p>No batch: " + html_cut(error.what(), kMaxShownText) + "</p>\n";
}

void make(const ReportOptions& options, Output& output) {
  const StateSource daemon(options.place);
  // The trace first: it may lack events that the statistics count, but not the other way round.
  Report report;
  report.timeline = timeline(daemon.json(handoff::StateText::trace));
  const Json status = daemon.json(handoff::StateText::status),
             config = daemon.json(handoff::StateText::config);
  WaitFacts facts = wait_facts(report.timeline, status,
                               static_cast<std::int64_t>(std::thread::hardware_concurrency()));
  facts.passthrough = facts.passthrough || daemon.is_socket();  // which is of mounts alone
  report.place = daemon.path();
  if (const auto store = config.find("store"); store != config.end() && store->is_string())
    report.store = store->get<std::string>();
  report.made = local_time();
  report.activity = activity(nullptr, status);
  report.decode_amplification = facts.decode_amplification;
  report.fetch_amplification = facts.fetch_amplification;
  report.advice = wait_advice(facts);
  if (options.batch) report.batch = batch_part(options, report.activity);
  const std::string page = report_page(report);
  if (options.output.empty()) return output.write(page);
  write_whole_file(options.output, page);
  for (const std::string& sentence : report.advice) output.write(sentence + "\n");
}

}  // namespace

CommandAction setup_report(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  add_place(app, options->place);
  app.add_option("-o,--output", options->output,
                 "write the page to this file, and its advice to standard output")
      ->type_name("FILE");
  app.add_flag("--batch", options->batch,
               "show the first batch of a view, too: this opens the store and reads it");
  add_engine_options(app, options->store);
  return [options](Output& output) { make(*options, output); };
}

}  // namespace batchfs
