#pragma once
// The parts of a URL that a user typed (RFC 3986), and percent-encoding.

#include <string>
#include <string_view>

namespace batchfs {

struct Uri {
  std::string scheme;    // lower case
  std::string userinfo;  // "user:password", decoded; empty: none
  std::string host;      // lower case, IPv6 in its brackets
  std::string port;      // digits; empty: the scheme's own
  std::string path;      // as written: begins with '/' or is empty
  std::string query;     // as written, without '?'

  /// `host` or `host:port`.
  std::string authority() const { return port.empty() ? host : host + ":" + port; }
  /// `scheme://authority/path`: without user, password and query, which may be secrets.
  std::string text() const { return scheme + "://" + authority() + path; }
};

/// Throws invalid_argument unless it is an absolute URL with a host. A fragment is dropped.
Uri parse_uri(const std::string& text);

/// The path of "file:///a/b", "file://localhost/a/b" (RFC 8089) and "file://a/b", which is
/// relative. Precondition: it begins with "file://".
std::string path_of_file_url(const std::string& url);

/// Every byte but letters, digits, "-._~" and those in `also_kept` becomes %XX.
std::string percent_encode(std::string_view text, std::string_view also_kept = {});
/// Malformed escapes stay as they are.
std::string percent_decode(std::string_view text);

}  // namespace batchfs
