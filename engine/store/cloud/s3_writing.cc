// S3: objects that are written, whole or in parts ("Uploading and copying objects using multipart
// upload").

#include <fmt/format.h>
#include <pugixml.hpp>

#include "engine/store/cloud/s3.h"

namespace batchfs {

namespace {

/// The service would take 5 GB at once. A part that fails is sent again by itself.
constexpr std::uint64_t kMaxS3Put = UINT64_C(64) << 20;
constexpr std::uint64_t kS3Part = UINT64_C(32) << 20, kMaxS3Parts = 10000;

pugi::xml_document parse_answer(const HttpResponse& response) {
  pugi::xml_document document;
  const std::string_view text = text_of(response).substr(0, 64 << 10);
  if (!text.empty()) document.load_buffer(text.data(), text.size());
  return document;
}

}  // namespace

WritableService::WriteLimits S3Service::write_limits() const {
  return {kMaxS3Put, kS3Part, kMaxS3Parts};
}

HttpRequest S3Service::put(const std::string& key, std::string body) {
  HttpRequest made = request("PUT", key_path(key), {});
  made.body = std::move(body);
  return made;
}

std::optional<HttpRequest> S3Service::begin_parts(const std::string& key) {
  return request("POST", key_path(key), {{"uploads", ""}});
}

std::string S3Service::upload_name(const HttpResponse& response) const {
  const pugi::xml_document document = parse_answer(response);
  std::string name = document.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (name.empty()) throw error(ErrorCode::corrupt, "the server does not name the upload it began");
  return name;
}

HttpRequest S3Service::put_part(const std::string& key, const std::string& upload,
                                std::uint64_t number, std::string body) {
  HttpRequest made = request("PUT", key_path(key),
                             {{"partNumber", std::to_string(number + 1)}, {"uploadId", upload}});
  made.body = std::move(body);
  return made;
}

std::string S3Service::part_name(const HttpResponse& response, std::uint64_t) const {
  const std::string* tag = find_header(response.headers, "etag");
  if (tag == nullptr || tag->empty())
    throw error(ErrorCode::corrupt, "the server does not name the part of an object that it took");
  return *tag;
}

HttpRequest S3Service::join_parts(const std::string& key, const std::string& upload,
                                  const std::vector<std::string>& parts) {
  HttpRequest made = request("POST", key_path(key), {{"uploadId", upload}});
  made.body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t n = 0; n < parts.size(); ++n) {
    std::string tag;
    for (const char c : parts[n])
      tag += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    made.body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", n + 1, tag);
  }
  made.body += "</CompleteMultipartUpload>";
  return made;
}

/// Joining takes long: the status is sent first, and a failure follows in the body.
void S3Service::check_joined(const HttpResponse& response) const {
  const pugi::xml_document document = parse_answer(response);
  if (document.child("CompleteMultipartUploadResult")) return;
  const std::string code = document.child("Error").child_value("Code");
  throw error(ErrorCode::io, fmt::format("the server did not join the parts of an object ({})",
                                         code.empty() ? "no answer" : code));
}

std::optional<HttpRequest> S3Service::drop_parts(const std::string& key,
                                                 const std::string& upload) {
  return request("DELETE", key_path(key), {{"uploadId", upload}});
}

}  // namespace batchfs
