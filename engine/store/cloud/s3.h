#pragma once
// S3 and compatible services (MinIO, Ceph, R2, …): s3://BUCKET/PREFIX.
// https://docs.aws.amazon.com/AmazonS3/latest/API/

#include <memory>
#include <mutex>
#include <string>

#include "engine/store/cloud/aws_credentials.h"
#include "engine/store/cloud/config_file.h"
#include "engine/store/cloud/writable_service.h"

namespace batchfs {

/// Options, environment, settings and profile, resolved for one place.
struct S3Place {
  std::string bucket;
  std::string prefix;    // of all keys, no slash at either end; may be empty
  std::string endpoint;  // "https://host:port/path", no slash at the end; empty: Amazon's own
  std::string region;    // empty: not known yet
  bool path_style = false;
  bool requester_pays = false;
  MissingAnswers missing = MissingAnswers::find_out;
};

/// Throws invalid_argument for text that cannot be a bucket, a prefix or an endpoint.
S3Place resolve_s3_place(const std::string& url, const StoreConfig& config,
                         const StoreEnvironment& environment, const AwsProfile& profile,
                         const ConfigFile& settings);

/// Thread-safe.
class S3Service final : public WritableService {
 public:
  /// `credentials` is null for anonymous access.
  S3Service(S3Place place, std::unique_ptr<AwsCredentials> credentials,
            StoreEnvironment environment);

  std::string url() const override;
  std::string realm() const override { return place_.endpoint; }
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
  HttpRequest put(const std::string& key, std::string body) override;
  std::optional<HttpRequest> begin_parts(const std::string& key) override;
  std::string upload_name(const HttpResponse& response) const override;
  HttpRequest put_part(const std::string& key, const std::string& upload, std::uint64_t number,
                       std::string body) override;
  std::string part_name(const HttpResponse& response, std::uint64_t number) const override;
  HttpRequest join_parts(const std::string& key, const std::string& upload,
                         const std::vector<std::string>& parts) override;
  void check_joined(const HttpResponse& response) const override;
  std::optional<HttpRequest> drop_parts(const std::string& key, const std::string& upload) override;

 private:
  HttpRequest request(const std::string& method, const std::string& key,
                      const QueryParameters& query) const;
  std::string key_path(const std::string& key) const;
  HttpRequest list_request(const std::string& prefix, const std::string& continuation,
                           bool is_deep);
  Error malformed_listing() const;
  void sign(HttpRequest& request);
  void probe();
  void refresh();
  Verdict denied(const std::string& message, bool is_object);
  Verdict other_region(const HttpResponse& response, const std::string& region);
  Verdict expired();
  void refuse(const Error& why);  // under the mutex, as is_refused()
  bool is_refused() const { return refusal_ && environment_.now() < refused_until_; }
  Error error(ErrorCode code, const std::string& why) const;

  const S3Place place_;
  const std::unique_ptr<AwsCredentials> credentials_;
  const StoreEnvironment environment_;

  /// S3 answers 403 for a missing object to clients without permission to list the bucket.
  enum class Denial { unknown, is_denied, is_missing };
  static Denial denial_of(MissingAnswers missing);

  mutable std::mutex mutex_;  // guards the fields below; never held while a request is in flight
  std::string region_;
  bool unsigned_ = false;  // there are no credentials
  Denial denial_;
  bool wants_probe_ = false;
  bool wants_refresh_ = false;
  std::optional<AwsKeys> last_keys_;
  std::optional<Error> refusal_;  // why nothing at all can be read
  WallTime refused_until_{}, refreshed_at_{};

  std::mutex probe_mutex_, refresh_mutex_;  // one at a time; taken before mutex_
};

std::shared_ptr<WritableService> make_s3_service(const std::string& url, const StoreConfig& config,
                                                 const StoreEnvironment& environment);

}  // namespace batchfs
