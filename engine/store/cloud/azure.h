#pragma once
// Azure Blob Storage: az://CONTAINER/PREFIX.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api

#include <memory>
#include <string>

#include "engine/store/cloud/azure_credentials.h"
#include "engine/store/cloud/object_service.h"

namespace batchfs {

/// Thread-safe: nothing changes after construction.
class AzureService final : public ObjectService {
 public:
  AzureService(AzurePlace place, StoreEnvironment environment);

  std::string url() const override;
  std::string realm() const override { return place_.endpoint; }
  Credentials credentials_kind() const override;
  HttpRequest get(const std::string& key) override;
  HttpRequest head(const std::string& key) override;
  HttpRequest list(const std::string& prefix, const std::string& continuation) override;
  Page parse_list(const std::string& prefix, const HttpResponse& response) override;
  /// Also turns a range of the last bytes, which Azure does not know, into one from the start: asks
  /// for the object's size.
  void authorize(HttpRequest& request) override;
  Verdict classify(const HttpResponse& response) override;

 private:
  HttpRequest request(const std::string& method, const std::string& path) const;
  void sign(HttpRequest& request) const;
  Error error(ErrorCode code, const std::string& why) const;

  const AzurePlace place_;
  const StoreEnvironment environment_;
};

std::shared_ptr<ObjectService> make_azure_service(const std::string& url, const StoreConfig& config,
                                                  const StoreEnvironment& environment);

}  // namespace batchfs
