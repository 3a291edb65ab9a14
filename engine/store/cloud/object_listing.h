#pragma once
// Lists a folder of an object store: page by page, in bounded memory.

#include <string>
#include <vector>

#include "engine/store/cloud/object_requests.h"
#include "engine/store/cloud/object_service.h"

namespace batchfs {

/// As Store::list(). Blocks.
std::vector<Store::Entry> list_objects(ObjectService& service, ObjectRequests& requests,
                                       const std::string& prefix);

}  // namespace batchfs
