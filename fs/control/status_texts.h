#pragma once
// The control files with a mount's state.

#include <string>

#include "engine/telemetry/trace.h"
#include "fs/control/mount_state.h"

namespace batchfs {

/// status.json.
std::string status_json(const MountState& state);
/// metrics: for Prometheus.
std::string metrics_text(const MountState& state);
/// trace.json: the work for batches in the last minute.
std::string recent_trace(const Trace& trace, const std::string& store_url);

}  // namespace batchfs
