#pragma once
// Asks the server of a socket for a text about its state.

#include <chrono>
#include <string>

#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// Connects to the socket at `path`, asks, and disconnects. Throws not_found if nobody listens,
/// timed_out if no answer comes within `patience`, not_supported if the server does not know the
/// question, corrupt if its answer is malformed, and the server's refusal. The text has at most
/// kMaxStateText bytes, with arbitrary contents.
std::string ask_state(const std::string& path, StateText what,
                      std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace batchfs::handoff
