#pragma once
// Asks the server of a socket for a text about its state.

#include <chrono>
#include <string>

#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// Connects to the socket at `path`, asks, and disconnects. Throws not_found where nobody listens,
/// timed_out where no answer comes within `patience`, not_supported where the server does not know
/// the question, corrupt where its answer makes no sense, and what the server refuses with. The
/// text is at most kMaxStateText bytes, and may hold anything.
std::string ask_state(const std::string& path, StateText what,
                      std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace batchfs::handoff
