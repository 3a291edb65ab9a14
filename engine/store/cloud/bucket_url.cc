#include "engine/store/cloud/bucket_url.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "engine/store/uri.h"

namespace batchfs {

BucketUrl parse_bucket_url(const std::string& url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string::npos)
    throw Error(ErrorCode::invalid_argument, "not a URL such as s3://bucket/store.zarr");
  BucketUrl parts;
  parts.scheme = url.substr(0, colon);
  const std::size_t slash = std::min(url.find('/', colon + 3), url.size());
  parts.bucket = url.substr(colon + 3, slash - colon - 3);
  if (parts.bucket.empty())
    throw Error(ErrorCode::invalid_argument, "the URL names no bucket", url);
  if (parts.bucket.find('@') != std::string::npos && parts.bucket.find(':') != std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                "credentials do not belong into the URL, where others see them");
  if (slash < url.size()) parts.prefix = url.substr(slash + 1);
  while (parts.prefix.ends_with('/')) parts.prefix.pop_back();
  while (parts.prefix.starts_with('/')) parts.prefix.erase(0, 1);
  for (const std::string& component : split(parts.prefix, '/'))
    if (component == "." || component == "..")
      throw Error(ErrorCode::invalid_argument, "a key may not hold the components '.' and '..'",
                  url);
  for (const char c : parts.prefix)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw Error(ErrorCode::invalid_argument, "a key may not hold control characters");
  return parts;
}

std::string normal_endpoint(const std::string& endpoint) {
  const Uri uri = parse_uri(endpoint);
  if (uri.scheme != "http" && uri.scheme != "https")
    throw Error(ErrorCode::invalid_argument, "an endpoint must begin with https:// or http://");
  if (!uri.userinfo.empty() || !uri.query.empty())
    throw Error(ErrorCode::invalid_argument,
                "an endpoint may not hold a user, a password or a query", uri.text());
  const bool own_port =
      (uri.scheme == "http" && uri.port == "80") || (uri.scheme == "https" && uri.port == "443");
  std::string text = uri.scheme + "://" + (own_port ? uri.host : uri.authority()) + uri.path;
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::string join_key(const std::string& prefix, const std::string& key) {
  if (prefix.empty() || key.empty()) return prefix + key;
  return prefix + "/" + key;
}

std::string absent_name() {
  std::random_device random;
  return fmt::format(".batchfs-probe-{:08x}{:08x}", random(), random());
}

}  // namespace batchfs
