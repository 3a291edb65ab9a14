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

using MakeService = std::shared_ptr<ObjectService> (*)(const std::string&, const StoreConfig&,
                                                       const StoreEnvironment&);

MakeService service_of(const std::string& scheme) {
  if (scheme == "s3" || scheme == "s3a") return make_s3_service;
  if (scheme == "gs" || scheme == "gcs") return make_gcs_service;
  if (scheme == "az" || scheme == "azure" || scheme == "abfs" || scheme == "abfss")
    return make_azure_service;
  throw Error(ErrorCode::not_supported, fmt::format("{}:// stores are not supported", scheme));
}

}  // namespace

std::shared_ptr<ObjectService> make_object_service(const std::string& url,
                                                   const StoreConfig& config,
                                                   const std::shared_ptr<HttpClient>& client,
                                                   const StoreEnvironment& environment) {
  const std::string scheme = url.substr(0, url.find("://"));
  if (scheme == "http" || scheme == "https")
    return std::make_shared<HttpService>(
        url, client,
        HttpService::Options{config.missing, config.redirects, config.revalidate, config.queries});
  return service_of(scheme)(url, config, environment);
}

CloudStore open_cloud_store(const std::string& url, const StoreConfig& config) {
  const MakeService make = service_of(url.substr(0, url.find("://")));
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
