#pragma once
// SCHEME://BUCKET/PREFIX, as object stores are named.

#include <string>

namespace batchfs {

struct BucketUrl {
  std::string scheme;
  std::string bucket;
  /// No slash at either end; as typed: a key is not percent-encoded in such a URL.
  std::string prefix;
};

/// Throws invalid_argument when the bucket is missing, or the prefix has a component "." or "..".
/// The message repeats no credentials.
BucketUrl parse_bucket_url(const std::string& url);

/// "https://host:port/path" without the scheme's own port and slashes at the end. Throws
/// invalid_argument for anything but http and https, and for an endpoint with a user, a password or
/// a query: endpoints are shown.
std::string normal_endpoint(const std::string& endpoint);

/// `prefix`/`key`, either may be empty.
std::string join_key(const std::string& prefix, const std::string& key);

/// A random key that no store has: a service answers for it as for missing ones.
std::string absent_name();

}  // namespace batchfs
