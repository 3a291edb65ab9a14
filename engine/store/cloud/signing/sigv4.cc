#include "engine/store/cloud/signing/sigv4.h"

#include <algorithm>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/crypto.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

/// Trims, and makes one space of runs of them.
std::string canonical_value(const std::string& value) {
  std::string out;
  bool space = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      space = !out.empty();
      continue;
    }
    if (space) out += ' ';
    space = false;
    out += c;
  }
  return out;
}

/// Lower-case name -> value; a header that occurs twice joins with a comma.
std::map<std::string, std::string> canonical_headers(const SigV4Request& request) {
  std::map<std::string, std::string> headers{{"host", canonical_value(request.host)}};
  for (const auto& [name, value] : request.headers) {
    auto [it, added] = headers.emplace(to_lower(name), canonical_value(value));
    if (!added) it->second += "," + canonical_value(value);
  }
  return headers;
}

std::string names_of(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

}  // namespace

std::string canonical_request_v4(const SigV4Request& request) {
  // Sorted by encoded name, then encoded value.
  std::vector<std::pair<std::string, std::string>> query;
  for (const auto& [name, value] : request.query)
    query.emplace_back(percent_encode(name), percent_encode(value));
  std::sort(query.begin(), query.end());
  std::string query_text;
  for (const auto& [name, value] : query)
    query_text += (query_text.empty() ? "" : "&") + name + "=" + value;

  const auto headers = canonical_headers(request);
  std::string header_text;
  for (const auto& [name, value] : headers) header_text += name + ":" + value + "\n";
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method,
                     request.path.empty() ? "/" : request.path, query_text, header_text,
                     names_of(headers), request.payload_hash);
}

std::string authorization_v4(const SigV4Request& request, const AwsKeys& keys,
                             const SigV4Scope& scope, const std::string& timestamp) {
  const std::string date = timestamp.substr(0, 8);
  const std::string credential_scope =
      fmt::format("{}/{}/{}/aws4_request", date, scope.region, scope.service);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", timestamp, credential_scope,
                  hex(sha256(canonical_request_v4(request))));
  std::string key = hmac_sha256("AWS4" + keys.secret_access_key, date);
  key = hmac_sha256(key, scope.region);
  key = hmac_sha256(key, scope.service);
  key = hmac_sha256(key, "aws4_request");
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                     keys.access_key_id, credential_scope, names_of(canonical_headers(request)),
                     hex(hmac_sha256(key, to_sign)));
}

std::vector<std::pair<std::string, std::string>> sign_v4(
    const SigV4Request& request, const AwsKeys& keys, const SigV4Scope& scope,
    std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  const std::string timestamp = fmt::format("{:%Y%m%dT%H%M%SZ}", utc);
  std::vector<std::pair<std::string, std::string>> added{
      {"x-amz-content-sha256", request.payload_hash}, {"x-amz-date", timestamp}};
  if (!keys.session_token.empty()) added.emplace_back("x-amz-security-token", keys.session_token);
  SigV4Request complete = request;
  complete.headers.insert(complete.headers.end(), added.begin(), added.end());
  added.emplace_back("Authorization", authorization_v4(complete, keys, scope, timestamp));
  return added;
}

}  // namespace batchfs
