#include "engine/store/cloud/gcs_credentials.h"

#include <fmt/format.h>

#include "engine/store/cloud/signing/secret_json.h"
#include "engine/store/crypto.h"
#include "engine/store/http/query.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr const char* kReadScope = "https://www.googleapis.com/auth/devstorage.read_only";
constexpr const char* kWriteScope = "https://www.googleapis.com/auth/devstorage.read_write";
constexpr const char* kTokenService = "https://oauth2.googleapis.com/token";
constexpr std::uint64_t kMaxGcsAnswer = 1 << 20;

Error no_access_token(const std::string& who, const std::string& why) {
  return Error(ErrorCode::access_denied, fmt::format("{} gave no access token: {}", who, why));
}

HttpRequest token_request(const std::string& url, const QueryParameters& form) {
  // A refresh token is a password.
  const Uri uri = parse_uri(url);
  if (uri.scheme != "https" && !is_loopback(uri))
    throw Error(ErrorCode::invalid_argument,
                "the token service of a credentials file must be https", uri.text());
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body = encode_query(form);
  request.largest_body = kMaxGcsAnswer;
  request.follow_redirects = false;
  return request;
}

}  // namespace

std::string service_account_assertion(const std::string& email, const std::string& key_id,
                                      const std::string& private_key_pem,
                                      const std::string& audience, bool for_writing, WallTime now) {
  const std::int64_t issued =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  Json header{{"alg", "RS256"}, {"typ", "JWT"}};
  if (!key_id.empty()) header["kid"] = key_id;
  const Json claims{{"iss", email},
                    {"scope", for_writing ? kWriteScope : kReadScope},
                    {"aud", audience},
                    {"iat", issued},
                    {"exp", issued + 3600}};
  const std::string text = base64url(header.dump()) + "." + base64url(claims.dump());
  return text + "." + base64url(rsa_sha256(private_key_pem, text));
}

GcsCredentials::GcsCredentials(StoreEnvironment environment, std::string credentials_file)
    : environment_(std::move(environment)),
      credentials_file_(std::move(credentials_file)),
      token_([this] { return find(); }, environment_.now) {}

GcsCredentials::Token GcsCredentials::find() const {
  if (auto token =
          environment_.first_variable({"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"}))
    return {std::move(token), std::nullopt};
  const auto named = environment_.variable("GOOGLE_APPLICATION_CREDENTIALS");
  if (const std::string path = named.value_or(credentials_file_); !path.empty()) {
    const auto file = environment_.file(path);
    if (!file) throw Error(ErrorCode::not_found, "no such Google credentials file", path);
    return from_file(path, file->text);
  }
  const auto folder = environment_.variable("CLOUDSDK_CONFIG");
  const auto path = folder ? folder : environment_.in_home(".config/gcloud");
  if (path)
    if (const auto file = environment_.file(*path + "/application_default_credentials.json"))
      return from_file(*path + "/application_default_credentials.json", file->text);
  if (auto token = from_metadata_server()) return *token;
  return {std::nullopt, std::nullopt};
}

GcsCredentials::Token GcsCredentials::from_file(const std::string& path,
                                                const std::string& text) const {
  try {
    const Json document = parse_secret_json(text, path);
    const JsonRef file(document, "");
    const std::string type = file.at("type").string();
    const auto token_uri = file.find("token_uri");
    const std::string service = token_uri ? token_uri->string() : kTokenService;
    if (type == "service_account") {
      const auto key_id = file.find("private_key_id");
      const std::string email = file.at("client_email").string();
      const std::string assertion = service_account_assertion(
          email, key_id ? key_id->string() : "", file.at("private_key").string(), service,
          for_writing_, environment_.now());
      const QueryParameters form{{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
                                 {"assertion", assertion}};
      return parse_token(environment_.fetch(token_request(service, form)),
                         fmt::format("the token service, for the account {},", email));
    }
    if (type == "authorized_user") {
      const QueryParameters form{{"grant_type", "refresh_token"},
                                 {"client_id", file.at("client_id").string()},
                                 {"client_secret", file.at("client_secret").string()},
                                 {"refresh_token", file.at("refresh_token").string()}};
      return parse_token(environment_.fetch(token_request(service, form)), "the token service");
    }
    throw Error(ErrorCode::not_supported,
                fmt::format("Google credentials of the type '{}'; `gcloud auth print-access-token` "
                            "prints a token for "
                            "GOOGLE_OAUTH_ACCESS_TOKEN",
                            type));
  } catch (Error& error) {
    throw error.at(path);
  }
}

GcsCredentials::Token GcsCredentials::parse_token(const HttpResponse& response,
                                                  const std::string& who) const {
  Json document;
  try {
    document = parse_secret_json(text_of(response), who);
  } catch (const Error&) {
    throw no_access_token(who, fmt::format("status {}", response.status));
  }
  const JsonRef answer(document, "");
  if (response.status != 200 || !answer.is_object()) {
    const auto reason = answer.is_object() ? answer.find("error") : std::nullopt;  // RFC 6749, 5.2
    throw no_access_token(who, reason && reason->is_string()
                                   ? reason->string()
                                   : fmt::format("status {}", response.status));
  }
  const auto token = answer.find("access_token");
  if (!token || !token->is_string() || token->string().empty())
    throw no_access_token(who, "the answer has none");
  Token found{token->string(), std::nullopt};
  // A token with a line break would be a header of its own.
  if (found.value->find_first_of("\r\n") != std::string::npos)
    throw no_access_token(who, "the answer is malformed");
  if (const auto life = answer.find("expires_in"); life && life->is_number())
    found.expires = environment_.now() + std::chrono::seconds(life->integer(0, 1 << 30));
  return found;
}

// https://cloud.google.com/compute/docs/metadata/overview
std::optional<GcsCredentials::Token> GcsCredentials::from_metadata_server() const {
  if (const auto off = environment_.variable("NO_GCE_CHECK");
      off && (*off == "true" || *off == "True" || *off == "1"))
    return std::nullopt;
  auto host = environment_.variable("GCE_METADATA_HOST");
  if (!host) {
    if (is_another_vendors_machine(environment_, "Google")) return std::nullopt;
    host = "169.254.169.254";
  }
  HttpRequest request;
  request.url =
      fmt::format("http://{}/computeMetadata/v1/instance/service-accounts/default/token", *host);
  request.headers = {{"Metadata-Flavor", "Google"}};
  request.timeout = kMetadataTimeout;
  request.largest_body = kMaxGcsAnswer;
  request.follow_redirects = false;
  HttpResponse response;
  try {
    response = environment_.fetch(std::move(request));
  } catch (const Error&) {
    return std::nullopt;  // not a machine of Google's
  }
  const std::string* flavor = find_header(response.headers, "metadata-flavor");
  if (response.status != 200 || flavor == nullptr || *flavor != "Google") return std::nullopt;
  return parse_token(response, "the metadata server");
}

}  // namespace batchfs
