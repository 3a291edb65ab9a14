#pragma once
// Sources of the bearer token for Google Cloud Storage, in this order:
//   GOOGLE_OAUTH_ACCESS_TOKEN or CLOUDSDK_AUTH_ACCESS_TOKEN; the file that
//   GOOGLE_APPLICATION_CREDENTIALS or batchfs's settings name; the file of `gcloud auth
//   application-default login`; the metadata server.
// A file is a service account's key (a signed assertion is exchanged for a token) or an authorized
// user's refresh token. Without any, requests are sent without a token.

#include <optional>
#include <string>

#include "engine/store/cloud/refreshing.h"
#include "engine/store/store_environment.h"

namespace batchfs {

/// Thread-safe.
class GcsCredentials {
 public:
  /// `credentials_file`: of batchfs's own settings; may be empty.
  GcsCredentials(StoreEnvironment environment, std::string credentials_file);
  /// Tokens of a service account open objects for writing, too; the rights of other tokens are
  /// decided elsewhere. Precondition: before the first token.
  void ask_for_writing() { for_writing_ = true; }

  /// nullopt: there are none. Blocks while a token is fetched. Throws access_denied when the source
  /// refuses, not_supported for kinds of credentials that batchfs does not know.
  std::optional<std::string> token() { return token_.get(); }
  /// Fetches another: the server does not take this one any more.
  std::optional<std::string> refresh() { return token_.refresh(); }

 private:
  using Token = Expiring<std::optional<std::string>>;
  Token find() const;
  Token from_file(const std::string& path, const std::string& text) const;
  std::optional<Token> from_metadata_server() const;
  Token parse_token(const HttpResponse& response, const std::string& who) const;

  const StoreEnvironment environment_;
  const std::string credentials_file_;
  bool for_writing_ = false;
  Refreshing<std::optional<std::string>> token_;
};

/// The assertion of a service account (RFC 7523 and "Using OAuth 2.0 for Server to Server
/// Applications"): a JSON Web Token signed with RS256, good for an hour.
std::string service_account_assertion(const std::string& email, const std::string& key_id,
                                      const std::string& private_key_pem,
                                      const std::string& audience, bool for_writing, WallTime now);

}  // namespace batchfs
