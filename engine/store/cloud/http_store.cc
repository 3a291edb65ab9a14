#include "engine/store/cloud/http_store.h"

#include <random>

#include <fmt/format.h>

#include "engine/store/cloud/cache_access.h"
#include "engine/store/cloud/object_store.h"
#include "engine/store/cloud/signing/crypto.h"
#include "engine/store/metadata_keys.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

/// Characters that a query may hold unescaped (RFC 3986, 3.4), and escapes.
constexpr std::string_view kQueryCharacters = "%/?:@!$&'()*+,;=";

/// The error document that object storage sends with 403 (Amazon S3's API reference, "Error
/// responses", which others follow).
bool says_access_denied(const HttpResponse& response) {
  const std::string_view body(reinterpret_cast<const char*>(response.body.data()),
                              response.body.size());
  return response.status == 403 && body.find("<Code>AccessDenied</Code>") != std::string_view::npos;
}

}  // namespace

HttpService::HttpService(const std::string& url, std::shared_ptr<HttpClient> client,
                         Options options)
    : client_(std::move(client)), options_(options) {
  const Uri uri = parse_uri(url);
  if (uri.scheme != "http" && uri.scheme != "https")
    throw Error(ErrorCode::invalid_argument, "not an http:// or https:// URL", uri.text());
  shown_ = uri.text();
  while (shown_.ends_with('/')) shown_.pop_back();
  if (!uri.query.empty()) query_ = "?" + uri.query;
  if (uri.userinfo.empty()) return;
  const bool has_password = uri.userinfo.find(':') != std::string::npos;
  authorization_ = "Basic " + base64(has_password ? uri.userinfo : uri.userinfo + ":");
}

HttpRequest HttpService::get(const std::string& key) {
  std::string query = query_;
  std::optional<AddressQueries::Address> address;
  if (options_.queries != nullptr) address = options_.queries->find(shown_, key);
  if (address && query.empty()) query = "?" + percent_encode(address->query, kQueryCharacters);
  HttpRequest request{.url = shown_ + "/" + percent_encode(address ? address->path : key, "/") +
                             query};
  request.follow_redirects = options_.redirects;
  request.secret = !query.empty() || !authorization_.empty();
  if (options_.revalidate || is_repository_key(key))
    request.headers.emplace_back("Cache-Control", "no-cache");
  return request;
}

HttpRequest HttpService::head(const std::string& key) {
  HttpRequest request = get(key);
  request.method = "HEAD";
  return request;
}

HttpRequest HttpService::list(const std::string&, const std::string&) {
  throw Error(ErrorCode::not_supported, "a web server cannot be listed", shown_);
}

ObjectService::Page HttpService::parse_list(const std::string&, const HttpResponse&) {
  throw Error(ErrorCode::not_supported, "a web server cannot be listed", shown_);
}

void HttpService::authorize(HttpRequest& request) {
  if (forbidden_ == Forbidden::to_be_found_out) find_out();
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
}

Verdict HttpService::classify(const HttpResponse& response) {
  Verdict verdict = classify_status(response);
  if (verdict.kind == Verdict::ok) has_read_ = true;
  if (options_.missing == MissingAnswers::also_403 && response.status == 403)
    return {Verdict::missing, std::nullopt};
  if (options_.missing == MissingAnswers::only_404) return verdict;
  const bool says_who_asks = !query_.empty() || !authorization_.empty();
  if (!says_access_denied(response) || says_who_asks || !has_read_) return verdict;
  if (forbidden_ == Forbidden::is_missing) return {Verdict::missing, std::nullopt};
  if (forbidden_ == Forbidden::is_denied) return verdict;
  forbidden_ = Forbidden::to_be_found_out;
  return {Verdict::moved, std::nullopt};
}

/// Asks for an object that cannot exist. Blocks.
void HttpService::find_out() {
  const std::lock_guard lock(finding_out_);
  if (forbidden_ != Forbidden::to_be_found_out) return;
  std::random_device random;
  const HttpResponse response =
      client_->send_and_wait(get(fmt::format(".batchfs-{:08x}{:08x}", random(), random())));
  if (classify_status(response).kind == Verdict::retry)
    throw Error(
        ErrorCode::io,
        fmt::format("the server does not say what is missing (HTTP status {})", response.status));
  forbidden_ = says_access_denied(response) ? Forbidden::is_missing : Forbidden::is_denied;
}

std::shared_ptr<Store> open_http_store(const std::string& url, const StoreConfig& config) {
  auto client = std::make_shared<HttpClient>(HttpClient::Options{.timeout = config.timeout});
  auto service = std::make_shared<HttpService>(
      url, client,
      HttpService::Options{config.missing, config.redirects, config.revalidate, config.queries});
  RequestOptions options = request_options(config);
  options.caches = shared_caches(config, *service, process_environment(client));
  return std::make_shared<ObjectStore>(std::move(service), std::move(client), std::move(options),
                                       version_options(config));
}

}  // namespace batchfs
