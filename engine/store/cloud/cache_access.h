#pragma once
// The shared caches of a store, as the user chose them.

#include <memory>

#include "engine/store/cloud/object_service.h"
#include "engine/store/cloud/via/shared_caches.h"
#include "engine/store/store_environment.h"

namespace batchfs {

/// The environment variable that names the shared caches of a machine, separated by commas. --via
/// sets it for this process and those that it starts.
inline constexpr const char* kCachesVariable = "BATCHFS_VIA";

/// Those of kCachesVariable. nullptr where there are none, and where the store is to be
/// asked itself (`revalidate`). Throws invalid_argument for what are no URLs of caches, and where
/// the store's credentials would be sent in clear, or not work through a cache.
std::shared_ptr<SharedCaches> shared_caches(const StoreConfig& config, const ObjectService& service,
                                            const StoreEnvironment& environment);

}  // namespace batchfs
