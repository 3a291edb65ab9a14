#include "bench/origin/http_request.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace bench {

namespace {

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ec == std::errc()) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<HttpRequest> parse_request(std::string_view text) {
  HttpRequest request;
  const std::size_t line_end = text.find("\r\n");
  const std::string_view line = text.substr(0, line_end);
  const std::size_t a = line.find(' '), b = line.rfind(' ');
  if (a == line.npos || b <= a) return std::nullopt;
  request.method = line.substr(0, a);
  std::string_view target = line.substr(a + 1, b - a - 1);
  const std::size_t question = target.find('?');
  request.path = decoded(target.substr(0, question));
  if (question != target.npos) {
    std::string_view rest = target.substr(question + 1);
    while (!rest.empty()) {
      const std::string_view pair = rest.substr(0, rest.find('&'));
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
      const std::size_t equals = std::min(pair.find('='), pair.size());
      request.query[decoded(pair.substr(0, equals))] =
          decoded(pair.substr(std::min(pair.size(), equals + 1)));
    }
  }
  std::string_view rest = line_end == text.npos ? std::string_view() : text.substr(line_end + 2);
  while (!rest.empty()) {
    const std::string_view header = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.size(), header.size() + 2));
    const std::size_t colon = header.find(':');
    if (colon == header.npos) continue;
    std::string name(header.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string_view value = header.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    request.headers[name] = value;
  }
  return request;
}

std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size) {
  if (!text.starts_with("bytes=")) return ByteRange{0, size};
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  std::uint64_t first = 0, last = size - 1;
  const std::string_view a = text.substr(0, dash), b = text.substr(dash + 1);
  if (a.empty()) {
    std::uint64_t count = 0;
    std::from_chars(b.data(), b.data() + b.size(), count);
    first = size - std::min(count, size);
  } else {
    std::from_chars(a.data(), a.data() + a.size(), first);
    if (!b.empty()) std::from_chars(b.data(), b.data() + b.size(), last);
  }
  if (size == 0 || first >= size || last < first) return std::nullopt;
  return ByteRange{first, std::min(last, size - 1) - first + 1};
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

}  // namespace bench
