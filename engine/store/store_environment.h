#pragma once
// The sources of credentials: environment variables, files, local servers, the clock. One object,
// so that tests can substitute their own.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/store/http/http_client.h"
#include "engine/store/uri.h"

namespace batchfs {

using WallTime = std::chrono::system_clock::time_point;

struct FileText {
  std::string text;
  bool others_can_read = false;  // its mode grants something to group or others
};

struct StoreEnvironment {
  /// An environment variable; nullopt when unset or empty.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  /// A small file; nullopt when there is none. Throws access_denied, io, invalid_argument past 1
  /// MiB.
  std::function<std::optional<FileText>(const std::string& path)> file;
  /// Sends and waits; throws as HttpClient does.
  std::function<HttpResponse(HttpRequest request)> fetch;
  std::function<WallTime()> now;

  /// The first of the variables that is set.
  std::optional<std::string> first_variable(std::initializer_list<const char*> names) const;
  /// `relative` in the user's home directory; nullopt when there is no home.
  std::optional<std::string> in_home(const std::string& relative) const;
};

/// The real ones.
StoreEnvironment process_environment(std::shared_ptr<HttpClient> client);

/// The body of an answer as text.
std::string_view text_of(const HttpResponse& response);

/// Link-local servers answer within this many seconds or not at all.
inline constexpr double kMetadataTimeout = 1;
/// Does the machine's firmware name a vendor, and not this one? Asking a cloud's metadata server
/// elsewhere would take the whole timeout.
bool is_another_vendors_machine(const StoreEnvironment& environment, const std::string& vendor);

/// Is it this machine, by address or by the name "localhost"?
bool is_loopback(const Uri& uri);

/// "2026-11-21T07:24:48Z" (RFC 3339; fractions of seconds are dropped); nullopt when malformed.
std::optional<WallTime> parse_utc_time(const std::string& text);

}  // namespace batchfs
