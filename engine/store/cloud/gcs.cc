#include "engine/store/cloud/gcs.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/base/strings.h"
#include "engine/store/cloud/bucket_url.h"
#include "engine/store/http/query.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr const char* kEndpoint = "https://storage.googleapis.com";
constexpr std::uint64_t kMaxGcsPage = 16 << 20;  // of a listing: 1000 names of 1 KiB, escaped
constexpr std::uint64_t kMaxGcsObject = UINT64_C(5) << 40;
constexpr std::chrono::seconds kRefreshPause{30};

struct GcsError {
  std::string reason, message;
};

/// The body of an error ("HTTP status and error codes for JSON"); downloads may answer plain text.
GcsError parse_gcs_error(const HttpResponse& response) {
  const std::string_view text = text_of(response).substr(0, 64 << 10);
  if (!text.starts_with('{')) return {};
  try {
    const Json document = parse_json(text, "");
    const JsonRef error = JsonRef(document, "").at("error");
    if (!error.is_object()) return {};
    GcsError told;
    if (const auto message = error.find("message"); message && message->is_string())
      told.message = message->string();
    if (const auto list = error.find("errors"); list && list->is_array())
      for (const JsonRef& entry : list->elements())
        if (entry.is_object())
          if (const auto reason = entry.find("reason"); reason && reason->is_string())
            told.reason = reason->string();
    return told;
  } catch (const Error&) {
    return {};
  }
}

/// Names are those below `parent`.
ObjectService::Listing parse_gcs_listing(std::string_view text, const std::string& parent,
                                         const Error& malformed) {
  const std::string below = parent.empty() ? "" : parent + "/";
  const auto name_of = [&](std::string name) {
    if (!name.starts_with(below)) throw malformed;
    return name.substr(below.size());
  };
  const auto text_at = [](const JsonRef& item, const char* name) {
    const auto value = item.find(name);
    return value ? value->string() : std::string();
  };
  ObjectService::Listing listing;
  try {
    const Json document = parse_json(text, "", {.memory = kMaxListing});
    const JsonRef root(document, "");
    if (const auto prefixes = root.find("prefixes"))
      for (const std::string& name : prefixes->strings()) listing.prefixes.push_back(name_of(name));
    if (const auto items = root.find("items"))
      for (const JsonRef& item : items->elements())
        listing.objects.push_back({name_of(item.at("name").string()), text_at(item, "etag"),
                                   parse_exact_number(text_at(item, "size")).value_or(0)});
    if (const auto next = root.find("nextPageToken"); next && !next->is_null())
      listing.continuation = next->string();
  } catch (const Error&) {
    throw malformed;
  }
  return listing;
}

bool is_gcs_listing(const HttpResponse& response) {
  return response.effective_url.find("/o?delimiter=") != std::string::npos ||
         response.effective_url.find("/o?fields=") != std::string::npos;
}

}  // namespace

GcsService::GcsService(Place place, std::unique_ptr<GcsCredentials> credentials,
                       StoreEnvironment environment)
    : place_(std::move(place)),
      credentials_(std::move(credentials)),
      environment_(std::move(environment)),
      denial_(denial_of(place_.missing)) {}

GcsService::Denial GcsService::denial_of(MissingAnswers missing) {
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

std::string GcsService::url() const {
  return "gs://" + place_.bucket + (place_.prefix.empty() ? "" : "/" + place_.prefix);
}

Error GcsService::error(ErrorCode code, const std::string& why) const {
  return Error(code, why, url());
}

HttpRequest GcsService::request(const std::string& path, QueryParameters query,
                                const char* interface) const {
  if (!place_.billing_project.empty()) query.emplace_back("userProject", place_.billing_project);
  HttpRequest made;
  made.url = fmt::format("{}{}/storage/v1/b/{}/o{}?{}", place_.endpoint, interface,
                         percent_encode(place_.bucket), path, encode_query(query));
  return made;
}

HttpRequest GcsService::get(const std::string& key) {
  // One path component: the slashes of the key are encoded, too.
  return request("/" + percent_encode(join_key(place_.prefix, key)), {{"alt", "media"}});
}

HttpRequest GcsService::head(const std::string& key) {
  HttpRequest made = get(key);
  made.method = "HEAD";
  return made;
}

WritableService::WriteLimits GcsService::write_limits() const { return {kMaxGcsObject, 0, 0}; }

HttpRequest GcsService::put(const std::string& key, std::string body) {
  HttpRequest made =
      request("", {{"uploadType", "media"}, {"name", join_key(place_.prefix, key)}}, "/upload");
  made.method = "POST";
  made.body = std::move(body);
  return made;
}

HttpRequest GcsService::list_request(const std::string& prefix, const std::string& continuation,
                                     QueryParameters query) const {
  const std::string below = join_key(place_.prefix, prefix);
  query.emplace_back("maxResults", "1000");
  if (!below.empty()) query.emplace_back("prefix", below + "/");
  if (!continuation.empty()) query.emplace_back("pageToken", continuation);
  HttpRequest made = request("", std::move(query));
  made.largest_body = kMaxGcsPage;
  return made;
}

HttpRequest GcsService::list(const std::string& prefix, const std::string& continuation) {
  return list_request(prefix, continuation,
                      {{"delimiter", "/"}, {"fields", "items(name),prefixes,nextPageToken"}});
}

std::optional<HttpRequest> GcsService::list_versions(const std::string& prefix,
                                                     const std::string& continuation) {
  return list_request(prefix, continuation, {{"fields", "items(name,etag,size),nextPageToken"}});
}

ObjectService::Page GcsService::parse_list(const std::string& prefix,
                                           const HttpResponse& response) {
  const Error malformed = malformed_listing();
  ObjectService::Listing listing =
      parse_gcs_listing(text_of(response), join_key(place_.prefix, prefix), malformed);
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

ObjectService::VersionPage GcsService::parse_versions(const std::string& prefix,
                                                      const HttpResponse& response) {
  ObjectService::Listing listing =
      parse_gcs_listing(text_of(response), join_key(place_.prefix, prefix), malformed_listing());
  for (ObjectService::VersionPage::Object& each : listing.objects)
    each.key = join_key(prefix, each.key);
  return {std::move(listing.objects), std::move(listing.continuation)};
}

Error GcsService::malformed_listing() const {
  return error(ErrorCode::corrupt, "the server's answer is not a listing of a bucket");
}

void GcsService::authorize(HttpRequest& request) {
  bool must_refresh, must_probe;
  {
    const std::lock_guard lock(mutex_);
    must_refresh = wants_refresh_;
    must_probe = wants_probe_;
  }
  if (must_refresh) refresh();
  if (must_probe) probe();
  add_token(request);
}

void GcsService::add_token(HttpRequest& request) {
  if (!credentials_) return;
  const std::optional<std::string> token = credentials_->token();
  {
    const std::lock_guard lock(mutex_);
    has_token_ = token.has_value();
  }
  if (!token) return;
  request.headers.emplace_back("Authorization", "Bearer " + *token);
  request.secret = true;
}

void GcsService::refresh() {
  const std::lock_guard one_at_a_time(ask_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!wants_refresh_) return;
    wants_refresh_ = false;
    refreshed_at_ = environment_.now();
  }
  credentials_->refresh();
}

/// Requests an object that does not exist, to learn the meaning of 401 and 403 here.
void GcsService::probe() {
  const std::lock_guard one_at_a_time(ask_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!wants_probe_) return;
  }
  HttpRequest made = get(absent_name());
  add_token(made);
  const HttpResponse response = environment_.fetch(std::move(made));
  const bool is_refused = response.status == 401 || response.status == 403;
  if (!is_refused && response.status != 404)
    throw error(ErrorCode::io,
                fmt::format("the server does not say why it denies access (HTTP status {})",
                            response.status));
  const std::lock_guard lock(mutex_);
  wants_probe_ = false;
  denial_ = is_refused ? Denial::is_missing : Denial::is_denied;
}

Verdict GcsService::classify(const HttpResponse& response) {
  if (response.status < 400 || response.status == 412) return classify_status(response);
  const GcsError told = parse_gcs_error(response);
  if (response.status == 404) {
    if (!is_gcs_listing(response) &&
        told.message.find("bucket does not exist") == std::string::npos)
      return {Verdict::missing, std::nullopt};
    return {Verdict::failed,
            error(ErrorCode::not_found, fmt::format("there is no bucket '{}'", place_.bucket))};
  }
  if (told.reason == "rateLimitExceeded" || told.reason == "userRateLimitExceeded" ||
      told.reason == "backendError")
    return {Verdict::retry,
            error(ErrorCode::io, fmt::format("the server is overloaded ({})", told.reason))};
  if (told.message.find("requester pays") != std::string::npos || told.reason == "required")
    return {Verdict::failed,
            error(ErrorCode::access_denied,
                  "who reads this bucket pays for it: name the project that does with "
                  "GOOGLE_CLOUD_QUOTA_PROJECT")};
  if (response.status != 401 && response.status != 403) return classify_status(response);

  const std::lock_guard lock(mutex_);
  if (response.status == 401 && has_token_) {
    if (wants_refresh_) return {Verdict::moved, std::nullopt};
    if (environment_.now() < refreshed_at_ + kRefreshPause)
      return {Verdict::failed, error(ErrorCode::access_denied,
                                     "the server does not accept the access token; get a new one")};
    wants_refresh_ = true;
    return {Verdict::moved, std::nullopt};
  }
  const Error refused = error(
      ErrorCode::access_denied,
      has_token_
          ? fmt::format("access denied: these credentials may not {} here",
                        is_gcs_listing(response) ? "list" : "read")
          : "access denied to a request without credentials; run `gcloud auth application-default "
            "login`, or set GOOGLE_APPLICATION_CREDENTIALS");
  if (is_gcs_listing(response) || denial_ == Denial::is_denied) return {Verdict::failed, refused};
  if (denial_ == Denial::is_missing) return {Verdict::missing, std::nullopt};
  wants_probe_ = true;
  return {Verdict::moved, std::nullopt};
}

std::shared_ptr<WritableService> make_gcs_service(const std::string& url, const StoreConfig& config,
                                                  const StoreEnvironment& environment) {
  const ConfigFile settings(environment);
  const BucketUrl parts = parse_bucket_url(url);
  for (const char c : parts.bucket)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a bucket's name", parts.bucket), url);
  GcsService::Place place{parts.bucket, parts.prefix, config.endpoint, "", config.missing};
  bool is_emulator = false;
  if (place.endpoint.empty()) {
    if (auto emulator = environment.variable("STORAGE_EMULATOR_HOST")) {
      if (emulator->find("://") == std::string::npos) emulator = "http://" + *emulator;
      place.endpoint = *emulator;
      is_emulator = true;
    }
  }
  if (place.endpoint.empty()) place.endpoint = settings.text("gcs", "endpoint");
  place.endpoint = normal_endpoint(place.endpoint.empty() ? kEndpoint : place.endpoint);
  place.billing_project = environment.variable("GOOGLE_CLOUD_QUOTA_PROJECT")
                              .value_or(settings.text("gcs", "billing_project"));
  std::unique_ptr<GcsCredentials> credentials;
  if (!config.anon && !is_emulator)
    credentials =
        std::make_unique<GcsCredentials>(environment, settings.text("gcs", "credentials_file"));
  return std::make_shared<GcsService>(std::move(place), std::move(credentials), environment);
}

}  // namespace batchfs
