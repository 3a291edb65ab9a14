#pragma once
// What a client of HTTP/1.1 asks for, as text: RFC 9112 (requests), RFC 9110 section 14 (ranges).

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

/// `text` up to and without the empty line that ends the headers. nullopt for what has no request
/// line.
std::optional<HttpRequest> parse_request(std::string_view text);

struct ByteRange {
  std::uint64_t first = 0, length = 0;
};
/// What a Range header asks for of so many bytes: all for a unit that is not known; nullopt for
/// none that exist.
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size);

/// For the text of an XML element.
std::string xml_escaped(std::string_view text);

}  // namespace bench
