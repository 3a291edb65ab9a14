#pragma once
// Stores of object storage services, by the scheme of their URL.

#include <memory>
#include <string>

#include "engine/store/cloud/writable_service.h"
#include "engine/store/store.h"
#include "engine/store/store_environment.h"

namespace batchfs {

struct CloudStore {
  std::shared_ptr<Store> store;
  // distinguishes, beside the URL, its objects from another server's or account's
  std::string realm;
};

/// s3:// (s3a://), gs:// (gcs://), az:// (azure://, abfs://, abfss://). Throws not_supported for
/// other schemes, invalid_argument, and what reading settings and credentials files throws.
/// Connects on the first read.
CloudStore open_cloud_store(const std::string& url, const StoreConfig& config);

/// Is it one of these?
bool is_cloud_scheme(const std::string& scheme);
/// The service of such a store, to write to. Throws as open_cloud_store().
std::shared_ptr<WritableService> make_writable_service(const std::string& url,
                                                       const StoreConfig& config,
                                                       const StoreEnvironment& environment);

/// The service of such a store, also for http:// and https://. Throws as open_cloud_store().
std::shared_ptr<ObjectService> make_object_service(const std::string& url,
                                                   const StoreConfig& config,
                                                   const std::shared_ptr<HttpClient>& client,
                                                   const StoreEnvironment& environment);

}  // namespace batchfs
