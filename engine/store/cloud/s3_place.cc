// Which server, which bucket, which region: from options, environment, settings file, AWS profile.

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/cloud/bucket_url.h"
#include "engine/store/cloud/s3.h"

namespace batchfs {

namespace {

void check_bucket(const std::string& bucket, const std::string& url) {
  const bool named = bucket.size() >= 3 && bucket.size() <= 255 &&
                     std::all_of(bucket.begin(), bucket.end(),
                                 [](char c) {
                                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                          (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                                          c == '_';
                                 }) &&
                     bucket.find("..") == std::string::npos;
  if (!named)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a bucket's name", bucket),
                url);
  if (bucket.ends_with("--x-s3"))
    throw Error(ErrorCode::not_supported,
                "directory buckets (S3 Express One Zone) are not supported", url);
}

/// A name that cannot be part of a host name, or whose dots the certificate *.s3.… does not cover.
bool needs_path_style(const std::string& bucket) {
  return bucket.find_first_of("._ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos;
}

}  // namespace

S3Place resolve_s3_place(const std::string& url, const StoreConfig& config,
                         const StoreEnvironment& environment, const AwsProfile& profile,
                         const ConfigFile& settings) {
  const auto variable = [&](const char* name) { return environment.variable(name).value_or(""); };
  S3Place place;
  const BucketUrl parts = parse_bucket_url(url);
  place.bucket = parts.bucket;
  place.prefix = parts.prefix;
  check_bucket(place.bucket, url);
  place.endpoint = first_nonempty({config.endpoint, variable("AWS_ENDPOINT_URL_S3"),
                                   variable("AWS_ENDPOINT_URL"), settings.text("s3", "endpoint"),
                                   profile.get("s3.endpoint_url"), profile.get("endpoint_url")});
  if (!place.endpoint.empty()) place.endpoint = normal_endpoint(place.endpoint);
  place.region =
      first_nonempty({config.region, variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"),
                      settings.text("s3", "region"), profile.get("region")});
  for (const char c : place.region)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
          c == '_'))
      throw Error(ErrorCode::invalid_argument,
                  "the region's name may hold letters, digits and '-' only");
  const std::string style = profile.get("s3.addressing_style");
  place.path_style = settings.flag("s3", "path_style") || style == "path" ||
                     needs_path_style(place.bucket) ||
                     (!place.endpoint.empty() && style != "virtual");
  const std::string payer = variable("AWS_REQUEST_PAYER");
  place.requester_pays =
      config.requester_pays || settings.flag("s3", "requester_pays") || payer == "requester";
  place.missing = config.missing;
  return place;
}

}  // namespace batchfs
