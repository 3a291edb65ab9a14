#include "engine/store/cloud/s3.h"

#include <algorithm>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "engine/base/strings.h"
#include "engine/store/cloud/bucket_url.h"
#include "engine/store/crypto.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr std::chrono::seconds kRefusalLasts{30};  // then it is looked into again
constexpr std::chrono::seconds kRefreshSettles{5};
constexpr std::uint64_t kMaxS3Page = 16 << 20;  // of a listing: 1000 keys of 1 KiB, escaped

/// The body of an error (Amazon S3 API Reference, "REST error responses"); all empty without one.
struct S3Error {
  std::string code, message, region;
};

S3Error parse_s3_error(const HttpResponse& response) {
  pugi::xml_document document;
  const std::string_view text = text_of(response).substr(0, 64 << 10);
  if (text.empty() || !document.load_buffer(text.data(), text.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {error.child_value("Code"), error.child_value("Message"), error.child_value("Region")};
}

/// Throws `malformed`.
ObjectService::Listing parse_s3_listing(std::string_view text, const std::string& prefix,
                                        const Error& malformed) {
  pugi::xml_document document;
  if (has_much_markup(text) ||
      !document.load_buffer(text.data(), text.size(),
                            pugi::parse_default | pugi::parse_ws_pcdata_single))
    throw malformed;
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) throw malformed;
  const std::string below = prefix.empty() ? "" : prefix + "/";
  const auto name_of = [&](std::string name) {
    if (!name.starts_with(below)) throw malformed;
    name.erase(0, below.size());
    return name;
  };
  ObjectService::Listing listing;
  for (const pugi::xml_node node : root.children("CommonPrefixes"))
    listing.prefixes.push_back(name_of(node.child_value("Prefix")));
  for (const pugi::xml_node node : root.children("Contents"))
    listing.objects.push_back({name_of(node.child_value("Key")), node.child_value("ETag"),
                               parse_exact_number(node.child_value("Size")).value_or(0)});
  if (std::string_view(root.child_value("IsTruncated")) == "true") {
    listing.continuation = root.child_value("NextContinuationToken");
    if (listing.continuation.empty()) throw malformed;
  }
  return listing;
}

bool is_listing(const HttpResponse& response) {
  return response.effective_url.find("?list-type=2") != std::string::npos;
}

}  // namespace

S3Service::S3Service(S3Place place, std::unique_ptr<AwsCredentials> credentials,
                     StoreEnvironment environment)
    : place_(std::move(place)),
      credentials_(std::move(credentials)),
      environment_(std::move(environment)),
      region_(place_.region),
      unsigned_(!credentials_),
      denial_(denial_of(place_.missing)) {}

S3Service::Denial S3Service::denial_of(MissingAnswers missing) {
  switch (missing) {
    case MissingAnswers::only_404:
      return Denial::is_denied;
    case MissingAnswers::also_403:
      return Denial::is_missing;
    case MissingAnswers::find_out:
      break;
  }
  return Denial::unknown;
}

std::string S3Service::url() const {
  return "s3://" + place_.bucket + (place_.prefix.empty() ? "" : "/" + place_.prefix);
}

Error S3Service::error(ErrorCode code, const std::string& why) const {
  return Error(code, why, url());
}

std::string S3Service::key_path(const std::string& key) const {
  return percent_encode(join_key(place_.prefix, key), "/");
}

HttpRequest S3Service::request(const std::string& method, const std::string& key,
                               const QueryParameters& query) const {
  std::string base = place_.endpoint;
  if (base.empty()) {
    const std::lock_guard lock(mutex_);
    // Without a region, the global name leads to the bucket's own in most cases.
    const char* domain = region_.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
    base = region_.empty() ? fmt::format("https://s3.{}", domain)
                           : fmt::format("https://s3.{}.{}", region_, domain);
  }
  if (place_.path_style)
    base += "/" + place_.bucket;
  else
    base.insert(base.find("://") + 3, place_.bucket + ".");
  HttpRequest made;
  made.method = method;
  made.url = base + "/" + key;
  if (!query.empty()) made.url += "?" + encode_query(query);
  // A signature is good for one host, and the answer's headers also contain a redirect's
  // information.
  made.follow_redirects = false;
  if (place_.requester_pays) made.headers.emplace_back("x-amz-request-payer", "requester");
  return made;
}

HttpRequest S3Service::get(const std::string& key) { return request("GET", key_path(key), {}); }

HttpRequest S3Service::head(const std::string& key) { return request("HEAD", key_path(key), {}); }

HttpRequest S3Service::list_request(const std::string& prefix, const std::string& continuation,
                                    bool is_deep) {
  const std::string below = join_key(place_.prefix, prefix);
  QueryParameters query{{"list-type", "2"}};
  if (!is_deep) query.emplace_back("delimiter", "/");
  if (!below.empty()) query.emplace_back("prefix", below + "/");
  if (!continuation.empty()) query.emplace_back("continuation-token", continuation);
  HttpRequest made = request("GET", "", query);
  made.largest_body = kMaxS3Page;
  return made;
}

HttpRequest S3Service::list(const std::string& prefix, const std::string& continuation) {
  return list_request(prefix, continuation, false);
}

std::optional<HttpRequest> S3Service::list_versions(const std::string& prefix,
                                                    const std::string& continuation) {
  return list_request(prefix, continuation, true);
}

ObjectService::Page S3Service::parse_list(const std::string& prefix, const HttpResponse& response) {
  const Error malformed = malformed_listing();
  ObjectService::Listing listing =
      parse_s3_listing(text_of(response), join_key(place_.prefix, prefix), malformed);
  Page page{{}, std::move(listing.continuation)};
  const auto add = [&](std::string key, bool is_prefix) {
    if (is_prefix && key.ends_with('/')) key.pop_back();
    if (key.empty()) return;  // the object that some tools make for the folder itself
    if (key.find('/') != std::string::npos) throw malformed;
    page.entries.push_back({std::move(key), is_prefix});
  };
  for (std::string& each : listing.prefixes) add(std::move(each), true);
  for (ObjectService::VersionPage::Object& each : listing.objects) add(std::move(each.key), false);
  return page;
}

ObjectService::VersionPage S3Service::parse_versions(const std::string& prefix,
                                                     const HttpResponse& response) {
  ObjectService::Listing listing =
      parse_s3_listing(text_of(response), join_key(place_.prefix, prefix), malformed_listing());
  for (ObjectService::VersionPage::Object& each : listing.objects)
    each.key = join_key(prefix, each.key);
  return {std::move(listing.objects), std::move(listing.continuation)};
}

Error S3Service::malformed_listing() const {
  return error(ErrorCode::corrupt, "the server's answer is not a listing of a bucket");
}

// ---- signing ----

void S3Service::authorize(HttpRequest& request) {
  bool must_refresh, must_probe;
  {
    const std::lock_guard lock(mutex_);
    must_refresh = wants_refresh_;
    must_probe = wants_probe_;
  }
  if (must_refresh) refresh();
  if (must_probe) probe();
  sign(request);
}

void S3Service::sign(HttpRequest& request) {
  if (!credentials_) return;
  const std::optional<AwsKeys> keys = credentials_->get();
  std::string region;
  {
    const std::lock_guard lock(mutex_);
    unsigned_ = !keys;
    last_keys_ = keys;
    region = region_.empty() ? "us-east-1" : region_;
  }
  if (!keys) return;
  const Uri uri = parse_uri(request.url);
  SigV4Request to_sign{request.method, uri.authority(), uri.path, decode_query(uri.query)};
  for (const auto& header : request.headers)
    if (header.first.starts_with("x-amz-")) to_sign.headers.push_back(header);
  if (!request.body.empty()) to_sign.payload_hash = hex(sha256(request.body));
  for (auto& header : sign_v4(to_sign, *keys, {region}, environment_.now()))
    request.headers.push_back(std::move(header));
}

/// After ExpiredToken. Unchanged credentials will be refused again.
void S3Service::refresh() {
  const std::lock_guard one_at_a_time(refresh_mutex_);
  std::optional<AwsKeys> before;
  {
    const std::lock_guard lock(mutex_);
    if (!wants_refresh_) return;
    before = last_keys_;
  }
  std::optional<AwsKeys> after;
  try {
    after = credentials_->refresh();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    wants_refresh_ = false;
    throw;
  }
  const std::lock_guard lock(mutex_);
  wants_refresh_ = false;
  if (after && before && after->session_token == before->session_token &&
      after->access_key_id == before->access_key_id)
    refuse(error(ErrorCode::access_denied, "the session token has expired; get a new one"));
  else
    refreshed_at_ = environment_.now();
}

/// Requests an object that does not exist: its answer has a body, unlike that to a HEAD, and shows
/// the meaning of 403 here.
void S3Service::probe() {
  const std::lock_guard one_at_a_time(probe_mutex_);
  for (int attempt = 0; attempt < 4; ++attempt) {
    {
      const std::lock_guard lock(mutex_);
      if (!wants_probe_) return;
    }
    HttpRequest made = get(absent_name());
    sign(made);
    const HttpResponse response = environment_.fetch(std::move(made));
    const S3Error told = parse_s3_error(response);
    std::unique_lock lock(mutex_);
    if (told.code == "AccessDenied" || (response.status == 403 && told.code.empty())) {
      denial_ = Denial::is_missing;
    } else if (response.status == 404) {
      denial_ = Denial::is_denied;
    } else {
      lock.unlock();
      const Verdict verdict = classify(response);
      if (verdict.kind == Verdict::moved) {
        refresh();
        continue;
      }
      if (verdict.kind == Verdict::retry) throw *verdict.error;
      lock.lock();
      refuse(verdict.error.value_or(error(ErrorCode::io, "the server contradicts itself")));
    }
    wants_probe_ = false;
    return;
  }
  throw error(ErrorCode::io, "the server does not say why it refuses the request");
}

void S3Service::refuse(const Error& why) {
  refusal_ = why;
  refused_until_ = environment_.now() + kRefusalLasts;
}

// ---- answers ----

Verdict S3Service::classify(const HttpResponse& response) {
  if (response.status < 300) return {Verdict::ok, std::nullopt};
  const bool is_redirect =
      response.status >= 301 && response.status <= 308 && response.status != 304;
  if (!is_redirect && (response.status < 400 || response.status == 416 || response.status == 412))
    return classify_status(response);

  const S3Error told = parse_s3_error(response);
  const auto is = [&](std::initializer_list<const char*> codes) {
    return std::find(codes.begin(), codes.end(), told.code) != codes.end();
  };
  const auto failed = [&](ErrorCode code, const std::string& why) {
    return Verdict{Verdict::failed, error(code, why)};
  };
  const auto* bucket_region = find_header(response.headers, "x-amz-bucket-region");
  if (is_redirect ||
      is({"AuthorizationHeaderMalformed", "PermanentRedirect",
          "IllegalLocationConstraintException"}) ||
      (response.status == 400 && told.code.empty() && bucket_region != nullptr)) {
    const Verdict verdict =
        other_region(response, bucket_region != nullptr ? *bucket_region : told.region);
    // A HEAD's 400 may also be for an expired token.
    if (verdict.kind == Verdict::moved || response.status != 400 || !told.code.empty())
      return verdict;
  }
  if (is({"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted",
          "Throttling", "RequestThrottled", "TooManyRequests", "BandwidthLimitExceeded"}))
    return {Verdict::retry,
            error(ErrorCode::io, fmt::format("the server is overloaded ({})", told.code))};
  if (is({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})) return expired();
  if (is({"NoSuchBucket"}))
    return failed(ErrorCode::not_found, fmt::format("there is no bucket '{}'", place_.bucket));
  if (is({"RequestTimeTooSkewed"}))
    return failed(ErrorCode::access_denied,
                  "the server refuses signatures from this machine: its clock is wrong; set it");
  if (is({"InvalidAccessKeyId"}))
    return failed(ErrorCode::access_denied,
                  "the server does not know the access key (InvalidAccessKeyId); "
                  "for public data try --anon");
  if (is({"SignatureDoesNotMatch"}))
    return failed(ErrorCode::access_denied,
                  "the secret key does not fit the access key (SignatureDoesNotMatch)");
  if (is({"InvalidToken"}))
    return failed(ErrorCode::access_denied,
                  "the session token does not fit the access key (InvalidToken)");
  if (is({"InvalidObjectState"}))
    return failed(ErrorCode::io,
                  "the object is archived and must be restored first (InvalidObjectState)");
  if (is({"InvalidBucketName"}))
    return failed(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a bucket's name", place_.bucket));
  if (is({"AccessDenied"}) || (response.status == 403 && told.code.empty()))
    return denied(told.message, !is_listing(response));
  if (response.status == 400 && told.code.empty() && credentials_) {
    // HEAD has no body with the reason: ask with a GET.
    const std::lock_guard lock(mutex_);
    if (is_refused()) return {Verdict::failed, refusal_};
    if (denial_ == Denial::unknown) {
      wants_probe_ = true;
      return {Verdict::moved, std::nullopt};
    }
  }
  if ((response.status == 401 || response.status == 403) && !told.code.empty())
    return failed(ErrorCode::access_denied,
                  fmt::format("the server refuses the request ({})", told.code));
  Verdict verdict = classify_status(response);
  if (verdict.error && !told.code.empty())
    verdict.error =
        error(verdict.error->code(), fmt::format("{} ({})", verdict.error->why(), told.code));
  return verdict;
}

Verdict S3Service::other_region(const HttpResponse& response, const std::string& region) {
  const std::lock_guard lock(mutex_);
  const bool usable = !region.empty() && region.size() < 64 &&
                      std::all_of(region.begin(), region.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                      });
  // The same region again is not new information, but requests that were in flight meanwhile report
  // it too.
  if (usable && (region != region_ ||
                 response.effective_url.find("." + region_ + ".") == std::string::npos)) {
    region_ = region;
    return {Verdict::moved, std::nullopt};
  }
  if (!place_.endpoint.empty())
    return {
        Verdict::failed,
        error(ErrorCode::io, fmt::format("{} answers with a redirect (status {}); name the server "
                                         "that it leads to with --endpoint",
                                         place_.endpoint, response.status))};
  return {Verdict::failed, error(ErrorCode::io,
                                 "the bucket is in another region and the server does not say in "
                                 "which; give it with --region")};
}

Verdict S3Service::expired() {
  const std::lock_guard lock(mutex_);
  if (is_refused()) return {Verdict::failed, refusal_};
  if (!credentials_)
    return {Verdict::failed,
            error(ErrorCode::access_denied, "the server refuses the request (ExpiredToken)")};
  // Requests in flight with the old token meanwhile are refused, too.
  wants_refresh_ = wants_refresh_ || environment_.now() >= refreshed_at_ + kRefreshSettles;
  return {Verdict::moved, std::nullopt};
}

Verdict S3Service::denied(const std::string& message, bool is_object) {
  const std::lock_guard lock(mutex_);
  const Error refused =
      error(ErrorCode::access_denied,
            unsigned_ ? "access denied to a request without credentials; set AWS_ACCESS_KEY_ID and "
                        "AWS_SECRET_ACCESS_KEY, or name a --profile"
                      : fmt::format("access denied: these credentials may not {} here",
                                    is_object ? "read" : "list"));
  if (!is_object) return {Verdict::failed, refused};
  // Newer servers name the permission that was missing: to list, when the object is not there.
  if (message.find("s3:ListBucket") != std::string::npos &&
      place_.missing != MissingAnswers::only_404)
    return {Verdict::missing, std::nullopt};
  if (message.find("s3:GetObject") != std::string::npos ||
      message.find("kms:") != std::string::npos)
    return {Verdict::failed, refused};
  if (is_refused()) return {Verdict::failed, refusal_};
  switch (denial_) {
    case Denial::is_missing:
      return {Verdict::missing, std::nullopt};
    case Denial::is_denied:
      return {Verdict::failed, refused};
    case Denial::unknown:
      break;
  }
  wants_probe_ = true;
  return {Verdict::moved, std::nullopt};
}

std::shared_ptr<WritableService> make_s3_service(const std::string& url, const StoreConfig& config,
                                                 const StoreEnvironment& environment) {
  const ConfigFile settings(environment);
  std::string name = config.profile;
  if (name.empty() && !environment.first_variable({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}))
    name = settings.text("s3", "profile");
  AwsProfile profile = read_aws_profile(environment, name);
  S3Place place = resolve_s3_place(url, config, environment, profile, settings);
  std::unique_ptr<AwsCredentials> credentials;
  if (!config.anon) {
    AwsCredentials::Options options{config.profile, place.region, std::nullopt};
    if (const std::string id = settings.text("s3", "access_key_id"); !id.empty())
      options.keys = AwsKeys{id, settings.text("s3", "secret_access_key"),
                             settings.text("s3", "session_token")};
    credentials =
        std::make_unique<AwsCredentials>(environment, std::move(profile), std::move(options));
  }
  return std::make_shared<S3Service>(std::move(place), std::move(credentials), environment);
}

}  // namespace batchfs
