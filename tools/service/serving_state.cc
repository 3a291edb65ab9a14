#include "tools/service/serving_state.h"

#include "engine/base/json_text.h"
#include "engine/base/limits.h"
#include "fs/control/status_texts.h"

namespace batchfs {

ServingState::ServingState(Options options, Engine& engine, const Store& store,
                           const GpuDeliveries& gpus, const Log& log)
    : options_(std::move(options)), engine_(engine), store_(store), gpus_(gpus), log_(log) {}

MountState ServingState::state(const handoff::HandoffServer& server) const {
  MountState state = read_mount_state(engine_, store_);
  state.uptime = Trace::now() - started_;
  state.handoff = handoff_json(server, gpus_);
  return state;
}

std::string ServingState::text(const handoff::HandoffServer& server,
                               handoff::StateText what) const {
  switch (what) {
    case handoff::StateText::status:
      return status_json(state(server));
    case handoff::StateText::metrics:
      return metrics_text(state(server));
    case handoff::StateText::trace:
      return recent_trace(engine_.trace(), store_.url());
    case handoff::StateText::log:
      return log_.text();
    case handoff::StateText::config:
      return json_text({{"store", store_.url()},
                        {"socket", options_.socket},
                        {"views", options_.views},
                        {"memory", options_.memory},
                        {"threads", engine_.state().threads}}) +
             "\n";
  }
  throw Error(ErrorCode::not_supported, "there is no such text of the state");
}

}  // namespace batchfs
