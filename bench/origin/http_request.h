#pragma once
// Parses the text of an HTTP/1.1 request: RFC 9112 (requests), RFC 9110 section 14 (ranges).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bench {

struct HttpRequest {
  std::string method, path;                           // the path without its query, decoded
  std::map<std::string, std::string> query, headers;  // decoded; names of headers in lower case
};

/// Parses `text`, which ends before the empty line that ends the headers. nullopt without a request
/// line.
std::optional<HttpRequest> parse_request(std::string_view text);

struct ByteRange {
  std::uint64_t first = 0, length = 0;
};
/// Parses a Range header for an object of `size` bytes. An unknown unit selects the whole object;
/// nullopt if no requested byte exists.
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size);

/// Escapes text for an XML element.
std::string xml_escaped(std::string_view text);

}  // namespace bench
