#include "engine/store/wrong_bytes.h"

#include <algorithm>
#include <string_view>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

constexpr std::size_t kHead = 512;

bool is_markup(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return false;
  const std::string begin = to_lower(std::string(head.substr(first, 14)));
  return begin.starts_with("<!doctype html") || begin.starts_with("<html") ||
         begin.starts_with("<?xml");
}

}  // namespace

std::string describe_wrong_bytes(std::span<const std::byte> head, FileCompression expected) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()),
                              std::min(head.size(), kHead));
  if (text.starts_with(std::string_view("PK\3\4", 4)))
    return "it is a zip archive: give the archive a name that ends in .zip, and open it by that";
  if (is_markup(text))
    return "it is a web page or an XML document: open the address in a browser to see what the "
           "server says";
  const FileCompression compression = compression_of(head);
  if (compression == expected) return {};
  switch (compression) {
    case FileCompression::gzip:
      return "it is gzip data: the server compresses what it sends, or the object was compressed "
             "after it was written; have it sent as it was written";
    case FileCompression::zstd:
      return "it is zstd data: the object was compressed after it was written; store it as it was "
             "written";
    case FileCompression::none:
      break;
  }
  return {};
}

Error with_wrong_bytes(const Error& error, std::span<const std::byte> bytes,
                       FileCompression expected) {
  const std::string what = describe_wrong_bytes(bytes, expected);
  return what.empty() ? error : Error(error.code(), error.why() + "; " + what, error.where());
}

}  // namespace batchfs
