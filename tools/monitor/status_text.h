#pragma once
// Output of `batchfs status`: a daemon's counters, for people.

#include <string>

#include "engine/base/json.h"

namespace batchfs {

/// A few lines of totals and one for each stream of batches, none wider than `columns` except for
/// `place` and the store's URL. `status` and `config` are the daemon's texts; values that they lack
/// are left out or 0.
std::string status_text(const Json& status, const Json& config, const std::string& place,
                        std::size_t columns);

}  // namespace batchfs
