#pragma once
// The version of a store's contents, for people and programs.

#include <cstdint>
#include <string>

#include "engine/base/json.h"
#include "engine/store/store.h"

namespace batchfs {

/// "2024-05-01T12:30:15.250000Z" of microseconds since 1970; seconds alone where they are whole.
std::string utc_text(std::uint64_t microseconds);

/// "snapshot 1CEC... of branch main, 2024-05-01T12:30:15Z: message", printable, one line.
std::string revision_text(const Store::Revision& revision);
Json revision_json(const Store::Revision& revision);

}  // namespace batchfs
