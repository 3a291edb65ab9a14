#pragma once
// Lists an object store: page by page, in bounded memory.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/cloud/object_requests.h"
#include "engine/store/cloud/object_service.h"

namespace batchfs {

/// Like Store::list(). Blocks.
std::vector<Store::Entry> list_objects(ObjectService& service, ObjectRequests& requests,
                                       const std::string& prefix);

using VisitVersion = std::function<bool(const ObjectService::VersionPage::Object&)>;
/// Calls `visit` for each object below `prefix`, until it returns false. False, and no call, where
/// the service does not list versions, or not to this client. Blocks.
bool list_versions(ObjectService& service, ObjectRequests& requests, const std::string& prefix,
                   const VisitVersion& visit);

/// Store::state() of an object with this version; nullopt where nothing is known.
std::optional<std::uint64_t> state_of(const std::string& version,
                                      std::optional<std::uint64_t> size);

}  // namespace batchfs
