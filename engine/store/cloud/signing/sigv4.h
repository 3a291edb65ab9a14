#pragma once
// AWS Signature Version 4 in the form that S3 (and everything compatible with it) asks for: the
// path is encoded once and not normalised.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
//
// Own, because the signer of libcurl before 8.10 fails on keys with '=', ':' and '*' and on
// x-amz-content-sha256.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "engine/store/http/query.h"

namespace batchfs {

struct AwsKeys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty for long-lived keys
};

/// The hexadecimal SHA-256 of no bytes: the body of every GET and HEAD.
inline constexpr const char* kEmptyPayload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// The body is not part of the signature (allowed over TLS).
inline constexpr const char* kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct SigV4Request {
  std::string method;
  std::string host;       // with the port where it is not the scheme's own, as in the Host header
  std::string path;       // as in the URL: starts with '/', percent-encoded once
  QueryParameters query;  // not encoded, any order
  std::vector<std::pair<std::string, std::string>> headers;  // all of these are signed
  std::string payload_hash = kEmptyPayload;
};

struct SigV4Scope {
  std::string region;
  std::string service = "s3";
};

/// The headers to add: x-amz-date, x-amz-content-sha256, x-amz-security-token with a session token,
/// and Authorization. The request must be sent with exactly this host, path, query and these
/// headers.
std::vector<std::pair<std::string, std::string>> sign_v4(const SigV4Request& request,
                                                         const AwsKeys& keys,
                                                         const SigV4Scope& scope,
                                                         std::chrono::system_clock::time_point now);

/// The single steps, for tests against the published examples, which sign only listed headers.
std::string canonical_request_v4(const SigV4Request& request);
std::string authorization_v4(const SigV4Request& request, const AwsKeys& keys,
                             const SigV4Scope& scope, const std::string& timestamp);

}  // namespace batchfs
