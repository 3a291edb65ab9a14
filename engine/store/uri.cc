#include "engine/store/uri.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Uri parse_uri(const std::string& text) {
  // The text may hold a password, so the error does not repeat it.
  const auto refuse = [](const char* why) { return Error(ErrorCode::invalid_argument, why); };
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f;
  });
  if (!clean) throw refuse("a URL may not hold spaces or control characters; write a space as %20");
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos || colon == 0) throw refuse("not a URL such as https://host/path");
  Uri uri;
  uri.scheme = to_lower(text.substr(0, colon));
  const std::size_t begin = colon + 3;
  const std::size_t end = std::min(text.find_first_of("/?#", begin), text.size());
  std::string authority = text.substr(begin, end - begin);
  if (const std::size_t at = authority.rfind('@'); at != std::string::npos) {
    uri.userinfo = percent_decode(authority.substr(0, at));
    authority.erase(0, at + 1);
  }
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string::npos) throw refuse("the URL's host has '[' without ']'");
  if (const std::size_t port = authority.find(':', bracket); port != std::string::npos) {
    uri.port = authority.substr(port + 1);
    authority.resize(port);
    if (uri.port.size() > 5 || uri.port.find_first_not_of("0123456789") != std::string::npos)
      throw refuse("the URL's port is not a number");
  }
  uri.host = to_lower(authority);
  if (uri.host.empty()) throw refuse("the URL names no host");
  const std::size_t fragment = std::min(text.find('#', end), text.size());
  const std::size_t question = std::min(text.find('?', end), fragment);
  uri.path = text.substr(end, question - end);
  if (question < fragment) uri.query = text.substr(question + 1, fragment - question - 1);
  return uri;
}

std::string path_of_file_url(const std::string& url) {
  constexpr std::string_view kFile = "file://", kThisMachine = "localhost/";
  std::string path = url.substr(kFile.size());
  if (path.starts_with(kThisMachine)) path.erase(0, kThisMachine.size() - 1);
  return path;
}

std::string percent_encode(std::string_view text, std::string_view also_kept) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || also_kept.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kHex[static_cast<unsigned char>(c) >> 4];
      encoded += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return encoded;
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

}  // namespace batchfs
