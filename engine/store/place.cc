#include "engine/store/place.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr std::array<std::string_view, 10> kRemote = {"http", "https", "s3",    "s3a",  "gs",
                                                      "gcs",  "az",    "azure", "abfs", "abfss"};

/// Without a user and a query, which may be secrets.
std::string shown_part(std::string_view rest) {
  return rest.find('@') != std::string_view::npos ? "/..."
                                                  : printable(rest.substr(0, rest.find('?')));
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The scheme before the first ':', in lower case; empty where there is none (RFC 3986).
std::string scheme_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_letter(text.front())) return {};
  const std::string_view scheme = text.substr(0, colon);
  if (!std::all_of(scheme.begin(), scheme.end(), [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
      }))
    return {};
  return to_lower(std::string(scheme));
}

}  // namespace

KindAndPlace split_kind(const std::string& text) {
  for (const std::string_view kind : {kIcechunkPlace, kReferencePlace})
    if (text.starts_with(kind)) return {std::string(kind), text.substr(kind.size())};
  return {"", text};
}

std::string usual_url(std::string text) {
  const std::string scheme = scheme_of(text);
  if (scheme.empty()) return text;
  const std::string_view rest = std::string_view(text).substr(scheme.size() + 1);
  if (scheme == "file" && rest.starts_with('/') && !rest.starts_with("//"))
    return "file://" + std::string(rest);
  if (!rest.starts_with("//")) return text;
  constexpr std::string_view kThisMachine = "//localhost/";
  if (scheme == "file" &&
      to_lower(std::string(rest.substr(0, kThisMachine.size()))) == kThisMachine)
    return "file:///" + std::string(rest.substr(kThisMachine.size()));
  return scheme + ":" + std::string(rest);
}

std::string usual_place(const std::string& text) {
  const auto [kind, place] = split_kind(text);
  const std::string url = usual_url(place);
  const std::string scheme = scheme_of(url);
  const std::string_view rest =
      std::string_view(url).substr(scheme.empty() ? 0 : scheme.size() + 1);
  const bool is_url = !scheme.empty() && rest.starts_with("//");
  if (scheme == "file" && !is_url)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{0}': a path after 'file:' begins with '/'; write '{1}', or './{0}' "
                            "for a file of that name",
                            printable(place), printable(rest)));
  if (!is_url && rest.starts_with('/') &&
      std::find(kRemote.begin(), kRemote.end(), scheme) != kRemote.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{0}:' has two slashes after it in a URL: write '{0}:/{1}', or './' "
                            "before a directory of that name",
                            scheme, shown_part(rest)));
  if (scheme != "file") return kind + url;
  std::string path = path_of_file_url(url);
  // Such a path is one only behind "file://".
  return kind + (path.find("://") == std::string::npos ? std::move(path) : url);
}

}  // namespace batchfs
