#include "engine/store/cloud/cloud_store.h"

#include <fmt/format.h>

#include "engine/store/cloud/azure.h"
#include "engine/store/cloud/cache_access.h"
#include "engine/store/cloud/gcs.h"
#include "engine/store/cloud/http_store.h"
#include "engine/store/cloud/object_store.h"
#include "engine/store/cloud/s3.h"

namespace batchfs {

namespace {

using MakeService = std::shared_ptr<WritableService> (*)(const std::string&, const StoreConfig&,
                                                         const StoreEnvironment&);

/// nullptr: there is none.
MakeService find_service(const std::string& scheme) {
  if (scheme == "s3" || scheme == "s3a") return make_s3_service;
  if (scheme == "gs" || scheme == "gcs") return make_gcs_service;
  if (scheme == "az" || scheme == "azure" || scheme == "abfs" || scheme == "abfss")
    return make_azure_service;
  return nullptr;
}

MakeService service_of(const std::string& url) {
  const std::string scheme = url.substr(0, url.find("://"));
  if (const MakeService found = find_service(scheme)) return found;
  throw Error(ErrorCode::not_supported, fmt::format("{}:// stores are not supported", scheme));
}

}  // namespace

bool is_cloud_scheme(const std::string& scheme) { return find_service(scheme) != nullptr; }

std::shared_ptr<WritableService> make_writable_service(const std::string& url,
                                                       const StoreConfig& config,
                                                       const StoreEnvironment& environment) {
  auto service = service_of(url)(url, config, environment);
  service->expect_writes();
  return service;
}

std::shared_ptr<ObjectService> make_object_service(const std::string& url,
                                                   const StoreConfig& config,
                                                   const std::shared_ptr<HttpClient>& client,
                                                   const StoreEnvironment& environment) {
  const std::string scheme = url.substr(0, url.find("://"));
  if (scheme == "http" || scheme == "https")
    return std::make_shared<HttpService>(
        url, client,
        HttpService::Options{config.missing, config.redirects, config.revalidate, config.queries});
  return service_of(url)(url, config, environment);
}

CloudStore open_cloud_store(const std::string& url, const StoreConfig& config) {
  const MakeService make = service_of(url);
  auto client = std::make_shared<HttpClient>(HttpClient::Options{.timeout = config.timeout});
  // Tokens are fetched with the same client.
  const StoreEnvironment environment = process_environment(client);
  std::shared_ptr<ObjectService> service = make(url, config, environment);
  const std::string realm = service->realm();
  RequestOptions options = request_options(config);
  options.caches = shared_caches(config, *service, environment);
  return {std::make_shared<ObjectStore>(std::move(service), std::move(client), std::move(options),
                                        version_options(config)),
          realm};
}

}  // namespace batchfs
