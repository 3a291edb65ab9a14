// batchfs report: a page that shows what readers waited for in the last minute, and says what to do
// about it.

#include <memory>
#include <thread>

#include "engine/base/json.h"
#include "tools/cli/command.h"
#include "tools/cli/store_options.h"
#include "tools/cli/whole_file.h"
#include "tools/monitor/report_page.h"
#include "tools/monitor/wait_advice.h"
#include "tools/page/html.h"
#include "tools/service/state_source.h"

namespace batchfs {

namespace {

struct ReportOptions {
  std::string place, output;
};

void make(const ReportOptions& options, Output& output) {
  const StateSource daemon(options.place);
  // The trace first: what the statistics count, it may not have yet, but what it has, they do.
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
  return [options](Output& output) { make(*options, output); };
}

}  // namespace batchfs
