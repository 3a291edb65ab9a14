#include "tools/service/serving_state.h"

#include "engine/base/json_text.h"
#include "engine/base/limits.h"
#include "fs/control/status_texts.h"
#include "tools/service/served_store.h"

namespace batchfs {

ServingState::ServingState(Options options, Engine& engine,
                           std::shared_ptr<const Generation> newest, const GpuDeliveries& gpus,
                           const Log& log)
    : options_(std::move(options)),
      engine_(engine),
      gpus_(gpus),
      log_(log),
      newest_(std::move(newest)) {}

void ServingState::show(std::shared_ptr<const Generation> newest) {
  const std::lock_guard lock(mutex_);
  newest_.swap(newest);
}

std::shared_ptr<const Generation> ServingState::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

MountState ServingState::state(const handoff::HandoffServer& server) const {
  const auto of = newest();
  MountState state = read_mount_state(engine_, of->opened.stores());
  state.snapshot = of->reading();
  state.uptime = Trace::now() - started_;
  state.handoff = handoff_json(server, gpus_);
  return state;
}

std::string ServingState::config_text() const {
  const auto of = newest();
  Json config = {{"store", of->opened.store->url()},
                 {"socket", options_.socket},
                 {"views", options_.views},
                 {"memory", options_.memory},
                 {"threads", engine_.state().threads}};
  if (!options_.group.empty()) config["group"] = options_.group;
  tell_other_stores(of->opened, config);
  return json_text(config) + "\n";
}

std::string ServingState::text(const handoff::HandoffServer& server,
                               handoff::StateText what) const {
  switch (what) {
    case handoff::StateText::status:
      return status_json(state(server));
    case handoff::StateText::metrics:
      return metrics_text(state(server));
    case handoff::StateText::trace:
      return recent_trace(engine_.trace(), newest()->opened.store->url());
    case handoff::StateText::log:
      return log_.text();
    case handoff::StateText::config:
      return config_text();
  }
  throw Error(ErrorCode::not_supported, "there is no such text of the state");
}

}  // namespace batchfs
