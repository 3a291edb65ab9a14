#include "engine/store/cloud/via/object_checksum.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "engine/base/strings.h"
#include "engine/store/cloud/signing/crypto.h"

namespace batchfs {

namespace {

/// nullopt where libcrypto does not compute this one (MD5 in FIPS mode).
std::optional<std::string> digest_of(const Buffer& body, const EVP_MD* kind) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (EVP_Digest(body.data(), body.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 kind, nullptr) != 1)
    return std::nullopt;
  digest.resize(size);
  return digest;
}

bool is_whole(const HttpResponse& response) {
  if (response.status == 200) return response.body_received == response.body.size();
  const std::string* range = find_header(response.headers, "content-range");
  const std::size_t size = response.body.size();
  return response.status == 206 && range != nullptr && size > 0 &&
         *range == fmt::format("bytes 0-{}/{}", size - 1, size);
}

/// "crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==": the MD5 sum.
std::string_view md5_of_google(std::string_view header) {
  const std::size_t begin = header.find("md5=");
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = header.substr(begin + 4);
  return rest.substr(0, rest.find(','));
}

/// The MD5 sum in an ETag of S3, in hexadecimal digits; empty where it is none.
std::string_view md5_of_tag(const HttpHeaders& headers) {
  const bool is_amazon = std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return header.first.starts_with("x-amz-");
  });
  const std::string* encryption = find_header(headers, "x-amz-server-side-encryption");
  const std::string* tag = find_header(headers, "etag");
  if (!is_amazon || tag == nullptr || (encryption != nullptr && *encryption != "AES256") ||
      find_header(headers, "x-amz-server-side-encryption-customer-algorithm") != nullptr)
    return {};
  std::string_view digits = *tag;
  if (digits.size() != 34 || digits.front() != '"' || digits.back() != '"') return {};
  digits = digits.substr(1, 32);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos
             ? digits
             : std::string_view();
}

}  // namespace

std::optional<bool> fits_checksum(const HttpResponse& response) {
  if (!is_whole(response)) return std::nullopt;
  // Sums of parts, joined by "-", are not of the object.
  if (const std::string* sum = find_header(response.headers, "x-amz-checksum-sha256");
      sum != nullptr && sum->find('-') == std::string::npos)
    if (const auto digest = digest_of(response.body, EVP_sha256())) return base64(*digest) == *sum;
  std::string_view encoded;
  if (const std::string* hash = find_header(response.headers, "x-goog-hash"))
    encoded = md5_of_google(*hash);
  for (const char* name : {"content-md5", "x-ms-blob-content-md5"})
    if (const std::string* sum = find_header(response.headers, name); encoded.empty() && sum)
      encoded = *sum;
  const std::string_view digits =
      encoded.empty() ? md5_of_tag(response.headers) : std::string_view();
  if (encoded.empty() && digits.empty()) return std::nullopt;
  const auto digest = digest_of(response.body, EVP_md5());
  if (!digest) return std::nullopt;
  return encoded.empty() ? hex(*digest) == digits : base64(*digest) == encoded;
}

}  // namespace batchfs
