// Azure Blob Storage: block blobs that are written, whole ("Put Blob") or in blocks ("Put Block",
// "Put Block List").

#include <fmt/format.h>

#include "engine/store/cloud/azure.h"
#include "engine/store/cloud/signing/crypto.h"
#include "engine/store/http/query.h"

namespace batchfs {

namespace {

/// The service would take 5,000 MiB at once. A block that fails is sent again by itself.
constexpr std::uint64_t kMaxAzurePut = UINT64_C(64) << 20;
constexpr std::uint64_t kAzureBlock = UINT64_C(32) << 20, kMaxAzureBlocks = 50000;

/// Names a block; all names within a blob must have the same length.
std::string block_name(std::uint64_t number) { return base64(fmt::format("{:08}", number)); }

}  // namespace

WritableService::WriteLimits AzureService::write_limits() const {
  return {kMaxAzurePut, kAzureBlock, kMaxAzureBlocks};
}

HttpRequest AzureService::write_request(const std::string& method, const std::string& key,
                                        const QueryParameters& query, std::string body) const {
  HttpRequest made = request(method, "/" + percent_encode(join_key(place_.prefix, key), "/") +
                                         (query.empty() ? "" : "?" + encode_query(query)));
  made.body = std::move(body);
  return made;
}

HttpRequest AzureService::put(const std::string& key, std::string body) {
  HttpRequest made = write_request("PUT", key, {}, std::move(body));
  made.headers.emplace_back("x-ms-blob-type", "BlockBlob");
  return made;
}

HttpRequest AzureService::put_part(const std::string& key, const std::string&, std::uint64_t number,
                                   std::string body) {
  return write_request("PUT", key, {{"comp", "block"}, {"blockid", block_name(number)}},
                       std::move(body));
}

std::string AzureService::part_name(const HttpResponse&, std::uint64_t number) const {
  return block_name(number);
}

/// Blocks that no list names are forgotten by the service after a week.
HttpRequest AzureService::join_parts(const std::string& key, const std::string&,
                                     const std::vector<std::string>& parts) {
  std::string list = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
  for (const std::string& part : parts) list += "<Uncommitted>" + part + "</Uncommitted>";
  return write_request("PUT", key, {{"comp", "blocklist"}}, list + "</BlockList>");
}

}  // namespace batchfs
