#include "engine/store/http/response_checks.h"

#include <algorithm>
#include <ctime>

#include <curl/curl.h>
#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

const std::string kModified = "modified ";

struct ContentRange {
  std::optional<std::uint64_t> first, last;  // absent for "*"
  std::optional<std::uint64_t> total;
};

/// "bytes 0-99/1000", "bytes 0-99/*" or "bytes */1000".
std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  if (const std::string_view total = text.substr(slash + 1); total != "*") {
    range.total = parse_exact_number(total);
    if (!range.total) return std::nullopt;
  }
  const std::string_view part = text.substr(0, slash);
  if (part == "*") return range;
  const std::size_t dash = part.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  range.first = parse_exact_number(part.substr(0, dash));
  range.last = parse_exact_number(part.substr(dash + 1));
  if (!range.first || !range.last || *range.last < *range.first) return std::nullopt;
  if (range.total && *range.last >= *range.total) return std::nullopt;
  return range;
}

/// Web servers answer with a page for missing objects, or to have the user log in. Some name every
/// file of unknown type text/html, so the first byte must agree, where it has arrived.
bool is_web_page(const HttpResponse& response, const std::optional<ByteRange>& range) {
  const std::string* type = find_header(response.headers, "content-type");
  if (type == nullptr ||
      !(type->starts_with("text/html") || type->starts_with("application/xhtml")))
    return false;
  if (range && (range->from_end || range->offset > 0)) return true;
  const std::string_view body(reinterpret_cast<const char*>(response.body.data()),
                              response.body.size());
  const std::size_t first = body.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != std::string_view::npos && body[first] == '<';
}

std::optional<std::uint64_t> content_length(const HttpResponse& response) {
  const std::string* length = find_header(response.headers, "content-length");
  return length != nullptr ? parse_exact_number(*length) : std::nullopt;
}

std::optional<std::int64_t> date_of(const HttpResponse& response, std::string_view header) {
  const std::string* text = find_header(response.headers, header);
  const std::time_t time = text == nullptr ? -1 : curl_getdate(text->c_str(), nullptr);
  return time < 0 ? std::nullopt : std::optional<std::int64_t>(time);
}

}  // namespace

std::optional<std::uint64_t> check_object(const HttpResponse& response,
                                          const std::optional<ByteRange>& range,
                                          const std::string& where) {
  const auto broken = [&where](const std::string& why) { return Error(ErrorCode::io, why, where); };
  if (response.status == 200) {
    if (is_web_page(response, range))
      throw Error(ErrorCode::corrupt, "the server answered with a web page instead of the object",
                  where);
    std::optional<std::uint64_t> total = content_length(response);
    if (!range) {
      if (total && *total != response.body.size()) throw broken("the object arrived incomplete");
      return response.body.size();
    }
    // The range was cut out of the whole object. It may only be short where the object ends.
    const bool saw_end = !total && (range->from_end || response.body.size() < range->length);
    if (saw_end) total = response.body_received;
    if (!total) return std::nullopt;
    const std::uint64_t available =
        range->from_end ? *total : *total - std::min(range->offset, *total);
    if (response.body.size() != std::min(range->length, available))
      throw broken("the object arrived incomplete");
    return total;
  }
  if (!range)
    throw broken(
        fmt::format("the server answered a plain request with status {}", response.status));
  const std::string* header = find_header(response.headers, "content-range");
  const std::optional<ContentRange> got =
      header != nullptr ? parse_content_range(*header) : std::nullopt;
  if (response.status == 416) {
    // Nothing there at this offset. An object without bytes has no last ones, either.
    const bool beyond =
        got && got->total && (range->from_end ? *got->total == 0 : *got->total <= range->offset);
    if (got && !beyond) throw broken("the server refuses a range that the object has");
    return got ? got->total : std::nullopt;
  }
  if (response.status != 206)
    throw broken(
        fmt::format("the server answered a range request with status {}", response.status));
  if (!got || !got->first)
    throw broken("the server does not say which range it sends (Content-Range)");
  std::uint64_t first = range->offset;
  if (range->from_end) {
    if (!got->total)
      throw broken("the server does not say how large the object is (Content-Range)");
    first = *got->total - std::min(*got->total, range->length);
  }
  std::uint64_t last = range->from_end ? *got->total - 1
                       : range->length > UINT64_MAX - range->offset
                           ? UINT64_MAX
                           : range->offset + range->length - 1;
  if (got->total) last = std::min(last, *got->total - 1);
  const bool ends_right = *got->last == last || (!got->total && *got->last < last);
  if (*got->first != first || !ends_right)
    throw broken(fmt::format("the server sent bytes {}-{} where {}-{} were asked for", *got->first,
                             *got->last, first, last));
  if (response.body.size() != *got->last - *got->first + 1)
    throw broken(fmt::format("the server announced {} bytes and sent {}",
                             *got->last - *got->first + 1, response.body.size()));
  return got->total;
}

std::optional<std::uint64_t> narrow_range(HttpResponse& response, const ByteRange& range) {
  const std::string* header = find_header(response.headers, "content-range");
  const std::optional<ContentRange> got =
      header != nullptr ? parse_content_range(*header) : std::nullopt;
  if (!got || !got->first || !got->total || range.length == 0) return std::nullopt;
  const std::uint64_t first =
      range.from_end ? *got->total - std::min(*got->total, range.length) : range.offset;
  if (first >= *got->total) return std::nullopt;
  const std::uint64_t last = first + std::min(range.length, *got->total - first) - 1;
  const bool is_wider = *got->first < first || *got->last > last;
  if (!is_wider || *got->first > first || *got->last < last) return std::nullopt;
  for (auto& [name, value] : response.headers)
    if (to_lower(name) == "content-range")
      value = fmt::format("bytes {}-{}/{}", first, last, *got->total);
  return first - *got->first;
}

bool is_framed(const HttpResponse& response) {
  if (response.status == 206 || content_length(response)) return true;
  const std::string* coding = find_header(response.headers, "transfer-encoding");
  return coding != nullptr && to_lower(*coding).find("chunked") != std::string::npos;
}

bool is_encoded(const HttpResponse& response) {
  const std::string* encoding = find_header(response.headers, "content-encoding");
  return encoding != nullptr && !encoding->empty() && to_lower(*encoding) != "identity";
}

bool may_refuse_range(int status) { return status == 400 || status == 416 || status == 501; }

RangeSupport range_support(const HttpResponse& response, const ByteRange& range) {
  const std::string* header = find_header(response.headers, "content-range");
  if (response.status == 206 && header == nullptr) return RangeSupport::none;
  if (!range.from_end) return RangeSupport::as_asked;
  const std::optional<ContentRange> got =
      header != nullptr ? parse_content_range(*header) : std::nullopt;
  if (response.status == 206 && got && !got->total) return RangeSupport::no_suffixes;
  const bool is_empty = response.status == 416 && got && got->total == 0;
  return may_refuse_range(response.status) && !is_empty ? RangeSupport::no_suffixes
                                                        : RangeSupport::as_asked;
}

std::string version_of(const HttpResponse& response) {
  if (const std::string* tag = find_header(response.headers, "etag");
      tag != nullptr && !tag->empty())
    return *tag;
  const std::string* time = find_header(response.headers, "last-modified");
  return time != nullptr && !time->empty() ? kModified + *time : std::string();
}

bool is_date(std::string_view version) { return version.starts_with(kModified); }

std::optional<std::int64_t> modified_of(const HttpResponse& response) {
  return date_of(response, "last-modified");
}

std::optional<std::int64_t> sent_of(const HttpResponse& response) {
  return date_of(response, "date");
}

std::string identity_of(std::string_view version, std::optional<std::uint64_t> object_size) {
  if (version.starts_with("W/")) version.remove_prefix(2);
  if (!version.empty() && !is_date(version)) return std::string(version);
  return object_size ? fmt::format("{} size {}", version, *object_size) : std::string();
}

std::pair<std::string, std::string> unless_version(const std::string& version) {
  if (is_date(version)) return {"If-Modified-Since", version.substr(kModified.size())};
  return {"If-None-Match", version};
}

std::optional<double> retry_after(const HttpResponse& response) {
  const std::string* value = find_header(response.headers, "retry-after");
  if (value == nullptr) return std::nullopt;
  if (const std::optional<std::uint64_t> seconds = parse_exact_number(*value))
    return static_cast<double>(*seconds);
  const std::time_t time = curl_getdate(value->c_str(), nullptr);
  if (time < 0) return std::nullopt;
  return std::max(0.0, std::difftime(time, std::time(nullptr)));
}

}  // namespace batchfs
