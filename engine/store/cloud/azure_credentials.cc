#include "engine/store/cloud/azure_credentials.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/cloud/bucket_url.h"
#include "engine/store/cloud/signing/crypto.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

// The emulator's, which everybody knows.
// https://learn.microsoft.com/azure/storage/common/storage-connect-azurite
constexpr const char* kEmulatorAccount = "devstoreaccount1";
constexpr const char* kEmulatorKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
constexpr const char* kEmulatorEndpoint = "http://127.0.0.1:10000/devstoreaccount1";

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::string decode_key(const std::string& text) {
  try {
    return from_base64(text);
  } catch (const Error&) {
    throw Error(ErrorCode::invalid_argument,
                "the Azure account key is not base64: is all of it there?");
  }
}

QueryParameters parse_sas(std::string_view token) {
  if (token.starts_with('?')) token.remove_prefix(1);
  QueryParameters sas = decode_query(token);
  const bool has_signature = std::any_of(
      sas.begin(), sas.end(), [](const auto& parameter) { return parameter.first == "sig"; });
  if (!has_signature)
    throw Error(ErrorCode::invalid_argument,
                "the Azure shared access signature has no 'sig': is all of it there?");
  return sas;
}

/// "AccountName=…;AccountKey=…;…"
std::map<std::string, std::string> parse_connection_string(const std::string& text) {
  std::map<std::string, std::string> settings;
  for (const std::string& part : split(text, ';')) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos) settings[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return settings;
}

/// Account, container and prefix of the URL; the account may stay empty. Takes a shared access
/// signature off.
struct UrlParts {
  std::string account, host, container, prefix, sas;
};

UrlParts parse_url(std::string url) {
  UrlParts parts;
  // Keys may hold '?', signatures always hold this.
  for (const char* start : {"?sv=", "?sp=", "?st=", "?se=", "?si=", "?sr=", "?sig="})
    if (const std::size_t at = url.find(start); at != std::string::npos) {
      parts.sas = url.substr(at + 1);
      url.resize(at);
      break;
    }
  const BucketUrl split_url = parse_bucket_url(url);
  std::string container = split_url.bucket, host;
  parts.prefix = split_url.prefix;
  if (const std::size_t at = container.find('@'); at != std::string::npos) {
    host = container.substr(at + 1);
    container.resize(at);
  } else if (container.find('.') != std::string::npos) {
    host = container;
    const std::size_t slash = parts.prefix.find('/');
    container = parts.prefix.substr(0, slash);
    parts.prefix = slash == std::string::npos ? "" : parts.prefix.substr(slash + 1);
  }
  if (!host.empty()) {
    parts.account = host.substr(0, host.find('.'));
    // The same blobs have two names: one of the blob service, one of Data Lake.
    if (const std::size_t dfs = host.find(".dfs."); dfs != std::string::npos)
      host.replace(dfs, 5, ".blob.");
    if (host.find(".blob.") == std::string::npos || !is_name(parts.account))
      throw Error(ErrorCode::invalid_argument,
                  "the host must be ACCOUNT.blob.core.windows.net (or a sovereign cloud's)", url);
    parts.host = host;
  }
  if (!is_name(container) && container != "$root" && container != "$web")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a container's name", container), url);
  parts.container = container;
  return parts;
}

}  // namespace

AzurePlace resolve_azure_place(const std::string& url, const StoreConfig& config,
                               const StoreEnvironment& environment, const ConfigFile& settings) {
  const auto setting = [&](const char* name) { return settings.text("azure", name); };
  const auto variable = [&](std::initializer_list<const char*> names) {
    return environment.first_variable(names).value_or("");
  };
  const UrlParts parts = parse_url(url);
  const auto from_environment = environment.variable("AZURE_STORAGE_CONNECTION_STRING");
  auto connection =
      parse_connection_string(from_environment.value_or(setting("connection_string")));
  if (connection["UseDevelopmentStorage"] == "true" ||
      environment.variable("AZURE_STORAGE_USE_EMULATOR")) {
    connection["AccountName"] = kEmulatorAccount;
    connection["AccountKey"] = kEmulatorKey;
    if (connection["BlobEndpoint"].empty()) connection["BlobEndpoint"] = kEmulatorEndpoint;
  }
  AzurePlace place;
  place.container = parts.container;
  place.prefix = parts.prefix;
  place.missing = config.missing;
  place.account = first_nonempty({parts.account, connection["AccountName"],
                                  variable({"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"}),
                                  setting("account")});
  // A connection string speaks of its own account only.
  if (!connection["AccountName"].empty() && connection["AccountName"] != place.account)
    connection.clear();
  if (!place.account.empty() && !is_name(place.account))
    throw Error(ErrorCode::invalid_argument,
                "an Azure account's name has lower-case letters and digits only");

  place.endpoint =
      first_nonempty({config.endpoint, connection["BlobEndpoint"],
                      parts.host.empty() ? "" : "https://" + parts.host,
                      variable({"AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"}), setting("endpoint")});
  if (place.endpoint.empty()) {
    if (place.account.empty())
      throw Error(ErrorCode::invalid_argument,
                  "no Azure account is named; set AZURE_STORAGE_ACCOUNT_NAME, or type "
                  "az://ACCOUNT.blob.core.windows.net/CONTAINER/…",
                  "az://" + place.container);
    place.endpoint =
        fmt::format("https://{}.blob.{}", place.account,
                    first_nonempty({connection["EndpointSuffix"], "core.windows.net"}));
  }
  place.endpoint = normal_endpoint(place.endpoint);
  const Uri endpoint = parse_uri(place.endpoint);
  if (place.account.empty()) place.account = endpoint.host.substr(0, endpoint.host.find('.'));
  // A server that is not named after the account has it as the first part of the path.
  if (endpoint.path.empty() && !endpoint.host.starts_with(place.account + "."))
    place.endpoint += "/" + place.account;
  if (config.anon) return place;

  const std::string key = first_nonempty(
      {connection["AccountKey"],
       variable({"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY"})});
  const std::string sas =
      first_nonempty({connection["SharedAccessSignature"],
                      variable({"AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"})});
  if (!parts.sas.empty())
    place.sas = parse_sas(parts.sas);
  else if (!key.empty())
    place.key = decode_key(key);
  else if (!sas.empty())
    place.sas = parse_sas(sas);
  else if (const std::string own = setting("account_key"); !own.empty())
    place.key = decode_key(own);
  else if (const std::string own_sas = setting("sas_token"); !own_sas.empty())
    place.sas = parse_sas(own_sas);
  return place;
}

std::string azure_shared_key(const HttpRequest& request, const std::string& account,
                             const std::string& key) {
  std::map<std::string, std::string> headers;  // by lower-case name
  for (const auto& [name, value] : request.headers) {
    std::string lower = name;
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    headers[lower] = value;
  }
  if (request.range) headers["range"] = range_header(*request.range);
  if (!request.body.empty()) headers["content-length"] = std::to_string(request.body.size());
  std::string to_sign = request.method + "\n";
  for (const char* name :
       {"content-encoding", "content-language", "content-length", "content-md5", "content-type",
        "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"}) {
    const auto it = headers.find(name);
    if (it != headers.end()) to_sign += it->second;
    to_sign += '\n';
  }
  for (const auto& [name, value] : headers)
    if (name.starts_with("x-ms-")) to_sign += name + ":" + value + "\n";
  const Uri uri = parse_uri(request.url);
  to_sign += "/" + account + uri.path;
  QueryParameters query = decode_query(uri.query);
  std::sort(query.begin(), query.end());
  for (const auto& [name, value] : query) to_sign += "\n" + name + ":" + value;
  return fmt::format("SharedKey {}:{}", account, base64(hmac_sha256(key, to_sign)));
}

}  // namespace batchfs
