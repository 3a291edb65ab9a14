// batchfs status: the counters of a mount or a server, once.

#include "tools/cli/command.h"
#include "tools/cli/text_layout.h"
#include "tools/monitor/status_text.h"
#include "tools/service/state_source.h"

namespace batchfs {

namespace {

struct StatusOptions {
  std::string place;
  bool json = false;
};

void show(const StatusOptions& options, Output& output) {
  const StateSource daemon(options.place);
  if (options.json) return output.write(daemon.text(handoff::StateText::status));
  output.write(status_text(daemon.json(handoff::StateText::status),
                           daemon.json(handoff::StateText::config), daemon.path(),
                           text_layout(output.fd()).columns));
}

}  // namespace

CommandAction setup_status(CLI::App& app) {
  const auto options = std::make_shared<StatusOptions>();
  add_place(app, options->place);
  app.add_flag("--json", options->json, "write the JSON of .batchfs/status.json");
  return [options](Output& output) { show(*options, output); };
}

}  // namespace batchfs
