// Answers of object stores and web servers: listings in XML and JSON, refusals, and the headers of
// objects. The first byte selects the service, the second the status; then headers, "name: value"
// lines, up to a NUL; the rest is the body.

#include "engine/store/cloud/azure.h"
#include "engine/store/cloud/gcs.h"
#include "engine/store/cloud/s3.h"
#include "engine/store/http/response_checks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace {

constexpr int kStatuses[] = {200, 206, 301, 304, 307, 400, 401, 403, 404, 412, 416, 429, 500, 503};

HttpResponse answer_of(Input& input) {
  const int status = kStatuses[input.number<std::uint8_t>() % std::size(kStatuses)];
  const std::string lines = input.text();
  HttpHeaders headers;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size()),
                      colon = lines.find(": ", at);
    if (colon < end)
      headers.emplace_back(lines.substr(at, colon - at), lines.substr(colon + 2, end - colon - 2));
    at = end + 1;
  }
  const auto body = input.rest();
  HttpResponse response = FakeStoreEnvironment::answer(
      status, std::string(reinterpret_cast<const char*>(body.data()), body.size()), headers);
  response.body_received = body.size();
  return response;
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  static FakeStoreEnvironment fake{
      .variables = {{"HOME", "/h"}, {"AWS_EC2_METADATA_DISABLED", "true"}},
      .files = {},
      .answers = {},
      .requests = {}};
  static const std::shared_ptr<ObjectService> services[] = {
      make_s3_service("s3://bucket/p", {.anon = true}, fake.environment()),
      make_gcs_service("gs://bucket/p", {.anon = true}, fake.environment()),
      make_azure_service("az://account.blob.core.windows.net/container/p", {.anon = true},
                         fake.environment())};
  Input input(data, size);
  const auto which = input.number<std::uint8_t>();
  const HttpResponse response = answer_of(input);
  if (which % 4 == 3) {
    version_of(response);
    retry_after(response);
    for (const auto& range : {std::optional<ByteRange>(), std::optional(ByteRange{5, 10}),
                              std::optional(ByteRange{0, 8, true})}) {
      attempt([&] { check_object(response, range, "fuzz"); });
    }
    return 0;
  }
  ObjectService& service = *services[which % 4];
  const Verdict verdict = service.classify(response);
  must(verdict.kind != Verdict::failed || verdict.error);
  for (const char* prefix : {"", "t2m"}) {
    attempt([&] {
      for (const Store::Entry& entry : service.parse_list(prefix, response).entries) {
        must(!entry.name.empty() && entry.name.find('/') == std::string::npos);
      }
    });
    if (service.list_versions(prefix, ""))
      attempt([&] { service.parse_versions(prefix, response); });
  }
  return 0;
}
