#pragma once
// The shared caches that the user chose for a store.

#include <memory>

#include "engine/store/cloud/object_service.h"
#include "engine/store/cloud/via/shared_caches.h"
#include "engine/store/store_environment.h"

namespace batchfs {

/// The environment variable that names the shared caches of a machine, separated by commas.
inline constexpr const char* kCachesVariable = "BATCHFS_VIA";

/// The caches of the configuration, else of kCachesVariable. nullptr without caches, and with
/// `revalidate`, which asks the store itself. Throws invalid_argument for malformed URLs, and where
/// the store's credentials would be sent in clear text or fail through a cache.
std::shared_ptr<SharedCaches> shared_caches(const StoreConfig& config, const ObjectService& service,
                                            const StoreEnvironment& environment);

}  // namespace batchfs
