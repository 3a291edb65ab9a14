#include "engine/store/cloud/object_service.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/limits.h"

namespace batchfs {

std::optional<HttpRequest> ObjectService::list_versions(const std::string&, const std::string&) {
  return std::nullopt;
}

ObjectService::VersionPage ObjectService::parse_versions(const std::string&, const HttpResponse&) {
  throw Error(ErrorCode::internal, "listings of this service do not tell versions", url());
}

Verdict ObjectService::classify(const HttpResponse& response) { return classify_status(response); }

bool has_much_markup(std::string_view xml) {
  const auto is_markup = [](char c) { return c == '<' || c == '='; };  // tags and attributes
  return static_cast<std::size_t>(std::count_if(xml.begin(), xml.end(), is_markup)) >
         kMaxListingMarkup;
}

Verdict classify_status(const HttpResponse& response) {
  const auto error = [&](ErrorCode code, const std::string& why) {
    return Error(code, fmt::format("{} (HTTP status {})", why, response.status));
  };
  switch (response.status) {
    case 404:
    case 410:
      return {Verdict::missing, std::nullopt};
    case 401:
      return {Verdict::failed,
              error(ErrorCode::access_denied, "the server wants to know who asks")};
    case 403:
      return {Verdict::failed, error(ErrorCode::access_denied, "the server denies access")};
    case 412:
      return {Verdict::failed, error(ErrorCode::stale, "the object has changed")};
    case 429:
      return {Verdict::retry, error(ErrorCode::io, "the server wants fewer requests")};
    case 408:
    case 425:
    case 500:
    case 502:
    case 503:
    case 504:
      return {Verdict::retry, error(ErrorCode::io, "the server has a passing trouble")};
    default:
      if (response.status >= 200 && response.status < 300) return {Verdict::ok, std::nullopt};
      if (response.status >= 300 && response.status < 400)
        return {Verdict::failed, error(ErrorCode::io, "the server redirects to nowhere")};
      return {Verdict::failed, error(ErrorCode::io, "the server refuses the request")};
  }
}

}  // namespace batchfs
