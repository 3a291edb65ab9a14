#include "engine/store/cloud/azure.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "engine/base/strings.h"
#include "engine/store/cloud/bucket_url.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr const char* kVersion = "2021-12-02";     // of the REST interface
constexpr std::uint64_t kMaxAzurePage = 64 << 20;  // of a listing: 5000 blobs with their properties

/// RFC 9110, 5.6.7; not by the locale.
std::string http_date(WallTime now) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/// The code of an error, which is in a header even where there is no body.
std::string error_code(const HttpResponse& response) {
  if (const std::string* code = find_header(response.headers, "x-ms-error-code")) return *code;
  pugi::xml_document document;
  const std::string_view text = text_of(response).substr(0, 64 << 10);
  if (text.empty() || !document.load_buffer(text.data(), text.size())) return "";
  return document.child("Error").child_value("Code");
}

/// Names are those below `parent`.
ObjectService::Listing parse_azure_listing(std::string_view text, const std::string& parent,
                                           const Error& malformed) {
  pugi::xml_document document;
  if (has_much_markup(text) ||
      !document.load_buffer(text.data(), text.size(),
                            pugi::parse_default | pugi::parse_ws_pcdata_single))
    throw malformed;
  const pugi::xml_node root = document.child("EnumerationResults");
  if (!root) throw malformed;
  const std::string below = parent.empty() ? "" : parent + "/";
  const auto name_of = [&](const pugi::xml_node& node) {
    const pugi::xml_node name = node.child("Name");
    std::string key = name.child_value();
    if (name.attribute("Encoded").as_bool()) key = percent_decode(key);  // XML cannot hold it
    if (!key.starts_with(below)) throw malformed;
    return key.substr(below.size());
  };
  ObjectService::Listing listing;
  for (const pugi::xml_node node : root.child("Blobs").children("BlobPrefix"))
    listing.prefixes.push_back(name_of(node));
  for (const pugi::xml_node node : root.child("Blobs").children("Blob")) {
    const pugi::xml_node properties = node.child("Properties");
    // Accounts with a hierarchical namespace list folders as well.
    if (std::string_view(properties.child_value("ResourceType")) == "directory") continue;
    listing.objects.push_back(
        {name_of(node), properties.child_value("Etag"),
         parse_exact_number(properties.child_value("Content-Length")).value_or(0)});
  }
  listing.continuation = root.child_value("NextMarker");
  return listing;
}

}  // namespace

AzureService::AzureService(AzurePlace place, StoreEnvironment environment)
    : place_(std::move(place)), environment_(std::move(environment)) {}

std::string AzureService::url() const {
  return fmt::format("az://{}{}{}", place_.container, place_.prefix.empty() ? "" : "/",
                     place_.prefix);
}

Error AzureService::error(ErrorCode code, const std::string& why) const {
  return Error(code, why, url());
}

ObjectService::Credentials AzureService::credentials_kind() const {
  if (!place_.sas.empty()) return Credentials::secret;
  return place_.key.empty() ? Credentials::harmless : Credentials::sign_ranges;
}

HttpRequest AzureService::request(const std::string& method, const std::string& path) const {
  HttpRequest made;
  made.method = method;
  made.url = place_.endpoint + "/" + place_.container + path;
  made.headers = {{"x-ms-version", kVersion}};
  made.follow_redirects = false;
  return made;
}

HttpRequest AzureService::get(const std::string& key) {
  return request("GET", "/" + percent_encode(join_key(place_.prefix, key), "/"));
}

HttpRequest AzureService::head(const std::string& key) {
  HttpRequest made = get(key);
  made.method = "HEAD";
  return made;
}

HttpRequest AzureService::list_request(const std::string& prefix, const std::string& continuation,
                                       QueryParameters query) const {
  const std::string below = join_key(place_.prefix, prefix);
  query.insert(query.begin(), {{"restype", "container"}, {"comp", "list"}});
  if (!below.empty()) query.emplace_back("prefix", below + "/");
  if (!continuation.empty()) query.emplace_back("marker", continuation);
  HttpRequest made = request("GET", "?" + encode_query(query));
  made.largest_body = kMaxAzurePage;
  return made;
}

HttpRequest AzureService::list(const std::string& prefix, const std::string& continuation) {
  return list_request(prefix, continuation, {{"delimiter", "/"}});
}

std::optional<HttpRequest> AzureService::list_versions(const std::string& prefix,
                                                       const std::string& continuation) {
  return list_request(prefix, continuation, {});
}

ObjectService::Page AzureService::parse_list(const std::string& prefix,
                                             const HttpResponse& response) {
  const Error malformed = malformed_listing();
  ObjectService::Listing listing =
      parse_azure_listing(text_of(response), join_key(place_.prefix, prefix), malformed);
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

ObjectService::VersionPage AzureService::parse_versions(const std::string& prefix,
                                                        const HttpResponse& response) {
  ObjectService::Listing listing =
      parse_azure_listing(text_of(response), join_key(place_.prefix, prefix), malformed_listing());
  for (ObjectService::VersionPage::Object& each : listing.objects) {
    each.key = join_key(prefix, each.key);
    // Listings leave out the quotes that headers have.
    if (!each.version.empty() && !each.version.ends_with('"'))
      each.version = '"' + each.version + '"';
  }
  return {std::move(listing.objects), std::move(listing.continuation)};
}

Error AzureService::malformed_listing() const {
  return error(ErrorCode::corrupt, "the server's answer is not a listing of a container");
}

void AzureService::authorize(HttpRequest& request) {
  if (request.range && request.range->from_end) {
    HttpRequest size_request = request;
    size_request.method = "HEAD";
    size_request.range.reset();
    sign(size_request);
    const HttpResponse response = environment_.fetch(std::move(size_request));
    const std::string* length = find_header(response.headers, "content-length");
    // Any fault will also appear in the answer to the request itself, which needs some range.
    const std::uint64_t size =
        response.status == 200 && length != nullptr ? parse_exact_number(*length).value_or(0) : 0;
    const std::uint64_t count = std::min(request.range->length, size);
    request.range = ByteRange{size - count, std::max<std::uint64_t>(count, 1)};
  }
  sign(request);
}

void AzureService::sign(HttpRequest& request) const {
  if (!place_.sas.empty()) {
    request.url +=
        (request.url.find('?') == std::string::npos ? "?" : "&") + encode_query(place_.sas);
    request.secret = true;
  } else if (!place_.key.empty()) {
    request.headers.emplace_back("x-ms-date", http_date(environment_.now()));
    request.headers.emplace_back("Authorization",
                                 azure_shared_key(request, place_.account, place_.key));
  }
}

Verdict AzureService::classify(const HttpResponse& response) {
  if (response.status < 300 || response.status == 412) return classify_status(response);
  const std::string code = error_code(response);
  const auto is = [&](std::initializer_list<const char*> codes) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
  };
  const auto failed = [&](ErrorCode kind, const std::string& why) {
    return Verdict{Verdict::failed, error(kind, why)};
  };
  if (is({"ContainerNotFound", "ContainerDisabled", "ContainerBeingDeleted"}))
    return failed(ErrorCode::not_found, fmt::format("the account {} has no container '{}'",
                                                    place_.account, place_.container));
  // Private containers look missing to anonymous clients.
  if (is({"ResourceNotFound", "PublicAccessNotPermitted", "NoAuthenticationInformation"}) &&
      place_.is_anonymous())
    return failed(
        ErrorCode::access_denied,
        "access denied to a request without credentials, or there is no such container; set "
        "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN");
  if (response.status == 403 && text_of(response).find("date header") != std::string_view::npos)
    return failed(ErrorCode::access_denied,
                  "the server refuses signatures from this machine: its clock is wrong; set it");
  if (is({"AuthenticationFailed", "InvalidAuthenticationInfo"}))
    return failed(
        ErrorCode::access_denied,
        place_.sas.empty()
            ? "the account key is not this account's (AuthenticationFailed)"
            : "the shared access signature is wrong or has expired (AuthenticationFailed)");
  const bool is_listing = response.effective_url.find("comp=list") != std::string::npos;
  if (response.status == 403 && place_.missing == MissingAnswers::also_403 && !is_listing)
    return {Verdict::missing, std::nullopt};
  if (response.status == 401 || response.status == 403)
    return failed(ErrorCode::access_denied,
                  fmt::format("access denied: these credentials may not read or list here{}",
                              code.empty() ? "" : " (" + code + ")"));
  if (is({"BlobArchived", "BlobBeingRehydrated"}))
    return failed(ErrorCode::io, "the blob is archived and must be rehydrated first");
  Verdict verdict = classify_status(response);
  if (verdict.error && !code.empty())
    verdict.error =
        error(verdict.error->code(), fmt::format("{} ({})", verdict.error->why(), code));
  return verdict;
}

std::shared_ptr<WritableService> make_azure_service(const std::string& url,
                                                    const StoreConfig& config,
                                                    const StoreEnvironment& environment) {
  return std::make_shared<AzureService>(
      resolve_azure_place(url, config, environment, ConfigFile(environment)), environment);
}

}  // namespace batchfs
