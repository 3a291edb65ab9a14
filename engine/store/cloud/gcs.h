#pragma once
// Google Cloud Storage: gs://BUCKET/PREFIX, by the JSON API.
// https://cloud.google.com/storage/docs/json_api/v1

#include <memory>
#include <mutex>
#include <string>

#include "engine/store/cloud/config_file.h"
#include "engine/store/cloud/gcs_credentials.h"
#include "engine/store/cloud/writable_service.h"
#include "engine/store/http/query.h"

namespace batchfs {

/// Thread-safe.
class GcsService final : public WritableService {
 public:
  struct Place {
    std::string bucket;
    std::string prefix;           // of all keys, no slash at either end; may be empty
    std::string endpoint;         // "https://host", no slash at the end
    std::string billing_project;  // who pays for requests; empty: the bucket's owner
    MissingAnswers missing = MissingAnswers::find_out;
  };
  /// `credentials` is null for anonymous access.
  GcsService(Place place, std::unique_ptr<GcsCredentials> credentials,
             StoreEnvironment environment);

  std::string url() const override;
  std::string realm() const override { return place_.endpoint; }
  Credentials credentials_kind() const override {
    return credentials_ ? Credentials::secret : Credentials::harmless;
  }
  HttpRequest get(const std::string& key) override;
  HttpRequest head(const std::string& key) override;
  HttpRequest list(const std::string& prefix, const std::string& continuation) override;
  Page parse_list(const std::string& prefix, const HttpResponse& response) override;
  std::optional<HttpRequest> list_versions(const std::string& prefix,
                                           const std::string& continuation) override;
  VersionPage parse_versions(const std::string& prefix, const HttpResponse& response) override;
  void authorize(HttpRequest& request) override;
  Verdict classify(const HttpResponse& response) override;

  WriteLimits write_limits() const override;
  void expect_writes() override {
    if (credentials_) credentials_->ask_for_writing();
  }
  HttpRequest put(const std::string& key, std::string body) override;

 private:
  HttpRequest request(const std::string& path, QueryParameters query,
                      const char* interface = "") const;
  HttpRequest list_request(const std::string& prefix, const std::string& continuation,
                           QueryParameters query) const;
  Error malformed_listing() const;
  void add_token(HttpRequest& request);
  void refresh();
  void probe();
  Error error(ErrorCode code, const std::string& why) const;

  const Place place_;
  const std::unique_ptr<GcsCredentials> credentials_;
  const StoreEnvironment environment_;

  /// The server answers 401 or 403 for a missing object to clients that may not list the bucket.
  enum class Denial { unknown, is_denied, is_missing };
  static Denial denial_of(MissingAnswers missing);

  mutable std::mutex mutex_;  // guards the fields below; never held while a request is in flight
  bool has_token_ = false;
  Denial denial_;
  bool wants_probe_ = false;
  bool wants_refresh_ = false;
  WallTime refreshed_at_{};

  std::mutex ask_mutex_;  // one probe or refresh at a time; taken before mutex_
};

std::shared_ptr<WritableService> make_gcs_service(const std::string& url, const StoreConfig& config,
                                                  const StoreEnvironment& environment);

}  // namespace batchfs
