#include "engine/store/http_store.h"

#include "engine/store/crypto.h"
#include "engine/store/object_store.h"
#include "engine/store/uri.h"

namespace batchfs {

HttpService::HttpService(const std::string& url) {
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
  return {.url = shown_ + "/" + percent_encode(key, "/") + query_};
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
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
}

std::shared_ptr<Store> open_http_store(const std::string& url, const StoreConfig& config) {
  auto client = std::make_shared<HttpClient>(HttpClient::Options{.timeout = config.timeout});
  return std::make_shared<ObjectStore>(std::make_shared<HttpService>(url), std::move(client), request_options(config));
}

}  // namespace batchfs
