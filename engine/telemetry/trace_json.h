#pragma once
// A trace as JSON for Perfetto (ui.perfetto.dev) and chrome://tracing.
// Trace Event Format, "JSON Array Format": complete events ("X") and the names of their rows ("M").

#include <string>

#include "engine/telemetry/trace.h"

namespace batchfs {

/// Overlapping spans are in rows of their own: "fetch 1", "fetch 2", ... and a row for each reader.
/// Times are microseconds of CLOCK_MONOTONIC. `process` is its name, `pid` its number.
std::string trace_json(const Trace::Snapshot& snapshot, const std::string& process, int pid);

}  // namespace batchfs
