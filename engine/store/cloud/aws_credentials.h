#pragma once
// Where the keys for S3 come from. In this order, as the AWS libraries:
//   a profile that was named by an option; AWS_ACCESS_KEY_ID and its sisters; a web identity token
//   (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or a profile's); the profile's keys; the
//   container's credentials (AWS_CONTAINER_CREDENTIALS_*); the instance's (metadata service,
//   version 2).
// Nowhere: requests go out unsigned.

#include <optional>
#include <string>

#include "engine/store/cloud/aws_profile.h"
#include "engine/store/cloud/refreshing.h"
#include "engine/store/cloud/signing/sigv4.h"
#include "engine/store/store_environment.h"

namespace batchfs {

/// Thread-safe.
class AwsCredentials {
 public:
  struct Options {
    std::string profile;  // named by an option
    std::string region;   // for the token service; may be empty
    /// From batchfs's own settings: they replace all but the profile of an option.
    std::optional<AwsKeys> keys;
  };
  AwsCredentials(StoreEnvironment environment, AwsProfile profile, Options options);

  /// nullopt: there are none. Blocks while keys are fetched. Throws access_denied when the place
  /// that should have keys refuses them, not_supported for ways to get keys that batchfs does not
  /// know.
  std::optional<AwsKeys> get() { return keys_.get(); }
  /// Looks again: the server reports that the keys have expired.
  std::optional<AwsKeys> refresh() { return keys_.refresh(); }

 private:
  using Found = std::optional<Expiring<std::optional<AwsKeys>>>;
  Expiring<std::optional<AwsKeys>> find() const;
  Found from_environment() const;
  Found from_web_identity() const;
  Found from_profile() const;
  Found from_container() const;
  Found from_instance() const;

  const StoreEnvironment environment_;
  const AwsProfile profile_;
  const Options options_;
  Refreshing<std::optional<AwsKeys>> keys_;
};

}  // namespace batchfs
