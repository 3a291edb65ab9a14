#pragma once
// Azure Blob Storage: az://CONTAINER/PREFIX.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api

#include <memory>
#include <string>

#include "engine/store/cloud/azure_credentials.h"
#include "engine/store/cloud/writable_service.h"

namespace batchfs {

/// Thread-safe: nothing changes after construction.
class AzureService final : public WritableService {
 public:
  AzureService(AzurePlace place, StoreEnvironment environment);

  std::string url() const override;
  std::string realm() const override { return place_.endpoint; }
  Credentials credentials_kind() const override;
  HttpRequest get(const std::string& key) override;
  HttpRequest head(const std::string& key) override;
  HttpRequest list(const std::string& prefix, const std::string& continuation) override;
  Page parse_list(const std::string& prefix, const HttpResponse& response) override;
  std::optional<HttpRequest> list_versions(const std::string& prefix,
                                           const std::string& continuation) override;
  VersionPage parse_versions(const std::string& prefix, const HttpResponse& response) override;
  /// Also turns a range of the last bytes, which Azure does not know, into one from the start: asks
  /// for the object's size.
  void authorize(HttpRequest& request) override;
  Verdict classify(const HttpResponse& response) override;

  WriteLimits write_limits() const override;
  HttpRequest put(const std::string& key, std::string body) override;
  HttpRequest put_part(const std::string& key, const std::string& upload, std::uint64_t number,
                       std::string body) override;
  std::string part_name(const HttpResponse& response, std::uint64_t number) const override;
  HttpRequest join_parts(const std::string& key, const std::string& upload,
                         const std::vector<std::string>& parts) override;

 private:
  HttpRequest request(const std::string& method, const std::string& path) const;
  HttpRequest list_request(const std::string& prefix, const std::string& continuation,
                           QueryParameters query) const;
  Error malformed_listing() const;
  HttpRequest write_request(const std::string& method, const std::string& key,
                            const QueryParameters& query, std::string body) const;
  void sign(HttpRequest& request) const;
  Error error(ErrorCode code, const std::string& why) const;

  const AzurePlace place_;
  const StoreEnvironment environment_;
};

std::shared_ptr<WritableService> make_azure_service(const std::string& url,
                                                    const StoreConfig& config,
                                                    const StoreEnvironment& environment);

}  // namespace batchfs
