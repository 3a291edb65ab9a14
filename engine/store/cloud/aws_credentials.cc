#include "engine/store/cloud/aws_credentials.h"

#include <fmt/format.h>
#include <pugixml.hpp>

#include "engine/store/cloud/signing/secret_json.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMaxAwsAnswer = 1 << 20;

Error no_aws_credentials(const std::string& who, const std::string& why) {
  return Error(ErrorCode::access_denied, fmt::format("{} gave no AWS credentials: {}", who, why));
}

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

/// The JSON of the container and instance services.
std::optional<Expiring<std::optional<AwsKeys>>> parse_service_answer(const HttpResponse& response,
                                                                     const std::string& who) {
  if (response.status != 200)
    throw no_aws_credentials(who, fmt::format("status {}", response.status));
  try {
    const Json document = parse_secret_json(text_of(response), who);
    const JsonRef answer(document, "");
    Expiring<std::optional<AwsKeys>> found;
    found.value =
        AwsKeys{answer.at("AccessKeyId").string(), answer.at("SecretAccessKey").string(), ""};
    if (const auto token = answer.find("Token"); token && token->is_string())
      found.value->session_token = token->string();
    if (const auto end = answer.find("Expiration"); end && end->is_string())
      found.expires = parse_utc_time(end->string());
    return found;
  } catch (const Error&) {  // its text could repeat the answer
    throw no_aws_credentials(who, "the answer has no AccessKeyId and SecretAccessKey");
  }
}

HttpRequest metadata_request(const std::string& method, const std::string& url,
                             HttpHeaders headers = {}) {
  HttpRequest request;
  request.method = method;
  request.url = url;
  request.headers = std::move(headers);
  request.timeout = kMetadataTimeout;
  request.largest_body = kMaxAwsAnswer;
  request.follow_redirects = false;
  return request;
}

/// A token must not be sent in the clear to anywhere but this machine and the two platforms' own
/// agents.
bool may_serve_containers(const Uri& uri) {
  return uri.scheme == "https" || is_loopback(uri) || uri.host == "169.254.170.2" ||
         uri.host == "169.254.170.23" || uri.host == "[fd00:ec2::23]";
}

}  // namespace

AwsCredentials::AwsCredentials(StoreEnvironment environment, AwsProfile profile, Options options)
    : environment_(std::move(environment)),
      profile_(std::move(profile)),
      options_(std::move(options)),
      keys_([this] { return find(); }, environment_.now) {}

Expiring<std::optional<AwsKeys>> AwsCredentials::find() const {
  if (options_.profile.empty()) {
    if (auto found = from_environment()) return *found;
    if (options_.keys) return {options_.keys, std::nullopt};
  }
  if (auto found = from_web_identity()) return *found;
  if (auto found = from_profile()) return *found;
  if (auto found = from_container()) return *found;
  if (auto found = from_instance()) return *found;
  return {std::nullopt, std::nullopt};
}

AwsCredentials::Found AwsCredentials::from_environment() const {
  const auto id = environment_.variable("AWS_ACCESS_KEY_ID");
  const auto secret = environment_.variable("AWS_SECRET_ACCESS_KEY");
  if (!id && !secret) return std::nullopt;
  if (!id || !secret)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is set but {} is not", id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                    id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
  return {{AwsKeys{*id, *secret, environment_.variable("AWS_SESSION_TOKEN").value_or("")},
           std::nullopt}};
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
AwsCredentials::Found AwsCredentials::from_web_identity() const {
  const bool by_option = !options_.profile.empty();
  std::optional<std::string> token_file, role, session;
  if (!by_option) {
    token_file = environment_.variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    role = environment_.variable("AWS_ROLE_ARN");
    session = environment_.variable("AWS_ROLE_SESSION_NAME");
  }
  if (!token_file) {
    if (profile_.get("web_identity_token_file").empty()) return std::nullopt;
    token_file = profile_.get("web_identity_token_file");
    role = profile_.get("role_arn");
    if (!profile_.get("role_session_name").empty()) session = profile_.get("role_session_name");
  }
  const std::string who = "the token service (STS)";
  if (!role || role->empty())
    throw no_aws_credentials(who, "a web identity token needs a role: set AWS_ROLE_ARN");
  const auto token = environment_.file(*token_file);
  if (!token) throw Error(ErrorCode::not_found, "no such web identity token file", *token_file);

  std::string endpoint = environment_.first_variable({"AWS_ENDPOINT_URL_STS"}).value_or("");
  if (endpoint.empty())
    endpoint = options_.region.empty()
                   ? "https://sts.amazonaws.com"
                   : fmt::format("https://sts.{}.amazonaws.com", options_.region);
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint + "/";
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body = encode_query({{"Action", "AssumeRoleWithWebIdentity"},
                               {"Version", "2011-06-15"},
                               {"RoleArn", *role},
                               {"RoleSessionName", session.value_or("batchfs")},
                               {"WebIdentityToken", without_line_end(token->text)}});
  request.largest_body = kMaxAwsAnswer;
  request.follow_redirects = false;
  const HttpResponse response = environment_.fetch(std::move(request));

  pugi::xml_document document;
  const std::string_view text = text_of(response);
  const bool is_xml = document.load_buffer(text.data(), text.size());
  if (response.status != 200) {
    const std::string code = document.child("ErrorResponse").child("Error").child_value("Code");
    throw no_aws_credentials(
        who, is_xml && !code.empty() ? code : fmt::format("status {}", response.status));
  }
  const pugi::xml_node given = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  AwsKeys keys{given.child_value("AccessKeyId"), given.child_value("SecretAccessKey"),
               given.child_value("SessionToken")};
  if (keys.access_key_id.empty() || keys.secret_access_key.empty())
    throw no_aws_credentials(who, "the answer has no keys");
  return {{std::move(keys), parse_utc_time(given.child_value("Expiration"))}};
}

AwsCredentials::Found AwsCredentials::from_profile() const {
  const std::string id = profile_.get("aws_access_key_id"),
                    secret = profile_.get("aws_secret_access_key");
  // The other settings of a profile would need other programs or a browser.
  for (const char* setting :
       {"role_arn", "credential_process", "sso_session", "sso_start_url", "login_session"}) {
    if (profile_.get(setting).empty()) continue;
    if (!id.empty() && std::string_view(setting) != "role_arn") continue;
    throw Error(
        ErrorCode::not_supported,
        fmt::format(
            "the AWS profile '{0}' takes its keys from {1}, which batchfs cannot; `aws configure "
            "export-credentials --profile {0} --format env` prints them for the environment",
            profile_.name, setting));
  }
  if (id.empty() && secret.empty()) {
    if (options_.profile.empty()) return std::nullopt;
    throw Error(ErrorCode::not_found,
                fmt::format("the AWS profile '{}' has no keys", profile_.name));
  }
  if (id.empty() || secret.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "the AWS profile '{}' has only one of aws_access_key_id and aws_secret_access_key",
            profile_.name));
  return {{AwsKeys{id, secret, profile_.get("aws_session_token")}, std::nullopt}};
}

// https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
AwsCredentials::Found AwsCredentials::from_container() const {
  std::string url;
  if (const auto relative = environment_.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    url = "http://169.254.170.2" + *relative;
  } else if (const auto full = environment_.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    url = *full;
    if (!may_serve_containers(parse_uri(url)))
      throw Error(ErrorCode::invalid_argument,
                  "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or on this machine");
  } else {
    return std::nullopt;
  }
  HttpHeaders headers;
  if (const auto path = environment_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    const auto token = environment_.file(*path);
    if (!token)
      throw Error(ErrorCode::not_found, "no such container authorization token file", *path);
    headers.emplace_back("Authorization", without_line_end(token->text));
  } else if (const auto given = environment_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")) {
    headers.emplace_back("Authorization", *given);
  }
  return parse_service_answer(environment_.fetch(metadata_request("GET", url, std::move(headers))),
                              "the container's credential service");
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html (version 2
// only)
AwsCredentials::Found AwsCredentials::from_instance() const {
  const auto disabled = environment_.variable("AWS_EC2_METADATA_DISABLED");
  if (disabled &&
      (*disabled == "true" || *disabled == "True" || *disabled == "TRUE" || *disabled == "1"))
    return std::nullopt;
  auto endpoint = environment_.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (!endpoint) {
    // Old instances are Xen's.
    if (is_another_vendors_machine(environment_, "Amazon") &&
        is_another_vendors_machine(environment_, "Xen"))
      return std::nullopt;
    endpoint = "http://169.254.169.254";
  }
  while (endpoint->ends_with('/')) endpoint->pop_back();
  std::string token, role;
  const std::string roles_url = *endpoint + "/latest/meta-data/iam/security-credentials/";
  try {
    const HttpResponse granted =
        environment_.fetch(metadata_request("PUT", *endpoint + "/latest/api/token",
                                            {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}));
    if (granted.status != 200) return std::nullopt;
    token = text_of(granted);
    const HttpResponse roles = environment_.fetch(
        metadata_request("GET", roles_url, {{"X-aws-ec2-metadata-token", token}}));
    if (roles.status != 200) return std::nullopt;  // an instance without a role
    role = text_of(roles).substr(0, text_of(roles).find('\n'));
  } catch (const Error&) {
    return std::nullopt;  // not an EC2 instance
  }
  if (role.empty()) return std::nullopt;
  const HttpResponse keys = environment_.fetch(metadata_request(
      "GET", roles_url + percent_encode(role), {{"X-aws-ec2-metadata-token", token}}));
  return parse_service_answer(keys, "the instance metadata service");
}

}  // namespace batchfs
