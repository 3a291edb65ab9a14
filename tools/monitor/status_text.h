#pragma once
// What `batchfs status` shows: a daemon's counters, for people.

#include <string>

#include "engine/base/json.h"

namespace batchfs {

/// A few lines of totals and one for each stream of batches, none wider than `columns` but for
/// `place` and the store's URL. `status` and `config` are the daemon's texts; what they do not have
/// is left out or 0.
std::string status_text(const Json& status, const Json& config, const std::string& place,
                        std::size_t columns);

}  // namespace batchfs
