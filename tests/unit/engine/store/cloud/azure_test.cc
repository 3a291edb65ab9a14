#include "engine/store/cloud/azure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace azure_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct AzureTest : testing::Test {
  FakeStoreEnvironment fake;
  StoreConfig config;

  AzureTest() {
    fake.variables = {{"AZURE_STORAGE_ACCOUNT", "mine"}, {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}};
  }
  std::shared_ptr<WritableService> open(const std::string& url = "az://container/a b.zarr") {
    return make_azure_service(url, config, fake.environment());
  }
  static HttpResponse refusal(int status, const std::string& code) {
    return FakeStoreEnvironment::answer(status, "", {{"x-ms-error-code", code}});
  }
};

TEST_F(AzureTest, Requests) {
  const auto service = open();
  EXPECT_EQ(service->url(), "az://container/a b.zarr");
  HttpRequest request = service->get("dt=1/0.0");
  EXPECT_EQ(request.url, "https://mine.blob.core.windows.net/container/a%20b.zarr/dt%3D1/0.0");
  service->authorize(request);
  EXPECT_EQ(*find_header(request.headers, "x-ms-date"), "Sun, 30 Aug 2015 12:36:00 GMT");
  EXPECT_EQ(request.headers.back().first, "Authorization");
  EXPECT_THAT(request.headers.back().second, StartsWith("SharedKey mine:"));
  EXPECT_EQ(service->head("k").method, "HEAD");
}

TEST_F(AzureTest, WritesBlobsAndBlocks) {
  const auto service = open("az://container/p");
  const std::string blob = "https://mine.blob.core.windows.net/container/p/dt%3D1/0.0";
  HttpRequest request = service->put("dt=1/0.0", "bytes");
  EXPECT_EQ(request.method + " " + request.url, "PUT " + blob);
  EXPECT_EQ(*find_header(request.headers, "x-ms-blob-type"), "BlockBlob");
  EXPECT_EQ(service->remove("dt=1/0.0").method, "DELETE");
  EXPECT_FALSE(service->begin_parts("dt=1/0.0"));
  EXPECT_EQ(service->upload_name({}), "");
  request = service->put_part("dt=1/0.0", "", 12, "bytes");
  EXPECT_EQ(request.url, blob + "?comp=block&blockid=MDAwMDAwMTI%3D");
  EXPECT_EQ(request.body, "bytes");
  const std::vector<std::string> parts{service->part_name({}, 0), service->part_name({}, 12)};
  EXPECT_EQ(parts[1], "MDAwMDAwMTI=");
  request = service->join_parts("dt=1/0.0", "", parts);
  EXPECT_EQ(request.method + " " + request.url, "PUT " + blob + "?comp=blocklist");
  EXPECT_THAT(request.body, HasSubstr("<BlockList><Uncommitted>MDAwMDAwMDA=</Uncommitted>"
                                      "<Uncommitted>MDAwMDAwMTI=</Uncommitted></BlockList>"));
  EXPECT_FALSE(service->drop_parts("dt=1/0.0", ""));
}

TEST_F(AzureTest, SasGoesIntoTheQueryAndNowhereElse) {
  const auto service = open("az://container/p?sv=2021&sig=HU%2BSH");
  EXPECT_THAT(service->url(), Not(HasSubstr("HU")));
  HttpRequest request = service->list("", "");
  EXPECT_THAT(request.url, Not(HasSubstr("HU")));
  service->authorize(request);
  EXPECT_EQ(
      request.url,
      "https://mine.blob.core.windows.net/container?restype=container&comp=list&delimiter=%2F&"
      "prefix=p%2F&sv=2021&sig=HU%2BSH");
  request = service->get("k");
  service->authorize(request);
  EXPECT_EQ(request.url, "https://mine.blob.core.windows.net/container/p/k?sv=2021&sig=HU%2BSH");
  EXPECT_THAT(service->classify(refusal(403, "AuthenticationFailed")).error->what(),
              Not(HasSubstr("HU")));
}

TEST_F(AzureTest, LastBytesAreAskedForFromTheStart) {
  fake.variables["AZURE_STORAGE_ACCOUNT_KEY"] = "";
  StoreEnvironment environment = fake.environment();
  std::string length = "100";
  environment.fetch = [&](HttpRequest request) {
    EXPECT_EQ(request.method, "HEAD");
    EXPECT_FALSE(request.range);
    return length.empty() ? FakeStoreEnvironment::answer(404, "")
                          : FakeStoreEnvironment::answer(200, "", {{"content-length", length}});
  };
  const auto service = make_azure_service("az://container/p", config, environment);
  const auto range = [&](std::uint64_t last) {
    HttpRequest request = service->get("k");
    request.range = ByteRange{0, last, true};
    service->authorize(request);
    return std::pair(request.range->offset, request.range->length);
  };
  EXPECT_EQ(range(16), std::pair(std::uint64_t{84}, std::uint64_t{16}));
  EXPECT_EQ(range(1000), std::pair(std::uint64_t{0}, std::uint64_t{100}));
  length = "";  // the request itself will be told that there is nothing
  EXPECT_EQ(range(16), std::pair(std::uint64_t{0}, std::uint64_t{1}));
}

TEST_F(AzureTest, AListingOfAllDepthsContainsVersions) {
  const auto service = open("az://container/a b");
  EXPECT_EQ(service->list_versions("t", "2!")->url,
            "https://mine.blob.core.windows.net/container?restype=container&comp=list&"
            "prefix=a%20b%2Ft%2F&marker=2%21");
  const HttpResponse answer = FakeStoreEnvironment::answer(
      200,
      "<EnumerationResults><Blobs>"
      "<Blob><Name>a b/t/c</Name><Properties><Etag>0x1</Etag><ResourceType>directory</ResourceType>"
      "<Content-Length>0</Content-Length></Properties></Blob>"
      "<Blob><Name>a b/t/c/0/1</Name><Properties><Etag>0x8D8</Etag>"
      "<Content-Length>77</Content-Length></Properties></Blob>"
      "<Blob><Name>a b/t/zarr.json</Name></Blob>"
      "</Blobs><NextMarker>2</NextMarker></EnumerationResults>");
  const ObjectService::VersionPage page = service->parse_versions("t", answer);
  EXPECT_EQ(page.continuation, "2");
  ASSERT_EQ(page.objects.size(), 2U);
  EXPECT_EQ(page.objects[0].key, "t/c/0/1");
  EXPECT_EQ(page.objects[0].version, "\"0x8D8\"") << "as in a header";
  EXPECT_EQ(page.objects[0].size, 77U);
  EXPECT_EQ(page.objects[1].version, "");
  EXPECT_EQ(error_of([&] { service->parse_versions("u", answer); }).code(), ErrorCode::corrupt);
}

TEST_F(AzureTest, ListsPages) {
  const auto service = open("az://container/a b");
  EXPECT_THAT(service->list("t", "2!92!MDA=").url,
              HasSubstr("&prefix=a%20b%2Ft%2F&marker=2%2192%21MDA%3D"));
  const HttpResponse answer = FakeStoreEnvironment::answer(
      200,
      "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>"
      "<EnumerationResults ServiceEndpoint=\"https://mine.blob.core.windows.net/\" "
      "ContainerName=\"container\">"
      "<Prefix>a b/</Prefix><Delimiter>/</Delimiter><Blobs>"
      "<Blob><Name>a "
      "b/.zgroup</Name><Properties><Content-Length>24</Content-Length></Properties></Blob>"
      "<Blob><Name Encoded=\"true\">a%20b/x%EF%BF%BEy</Name></Blob>"
      "<BlobPrefix><Name>a "
      "b/t2m/</Name></BlobPrefix></Blobs><NextMarker>2!92!MDA=</NextMarker></EnumerationResults>");
  const ObjectService::Page page = service->parse_list("", answer);
  EXPECT_EQ(page.continuation, "2!92!MDA=");
  ASSERT_EQ(page.entries.size(), 3U);
  EXPECT_EQ(page.entries[0].name, "t2m");
  EXPECT_TRUE(page.entries[0].is_prefix);
  EXPECT_EQ(page.entries[1].name, ".zgroup");
  EXPECT_EQ(page.entries[2].name, "x\xEF\xBF\xBEy");
  for (const char* body : {"", "<html/>",
                           "<EnumerationResults><Blobs><Blob><Name>elsewhere</Name></Blob></"
                           "Blobs></EnumerationResults>"})
    EXPECT_EQ(
        error_of([&] { service->parse_list("", FakeStoreEnvironment::answer(200, body)); }).code(),
        ErrorCode::corrupt);
}

TEST_F(AzureTest, ErrorsMeanWhatTheyMean) {
  auto service = open();
  EXPECT_EQ(service->classify(refusal(404, "BlobNotFound")).kind, Verdict::missing);
  EXPECT_EQ(service->classify(refusal(404, "ResourceNotFound")).kind, Verdict::missing);
  EXPECT_EQ(service->classify(refusal(503, "ServerBusy")).kind, Verdict::retry);
  EXPECT_EQ(service->classify(refusal(500, "OperationTimedOut")).kind, Verdict::retry);
  const auto code = [&](const HttpResponse& response) {
    const Verdict verdict = service->classify(response);
    EXPECT_EQ(verdict.kind, Verdict::failed);
    return verdict.error->code();
  };
  EXPECT_EQ(code(refusal(404, "ContainerNotFound")), ErrorCode::not_found);
  EXPECT_EQ(code(refusal(403, "AuthenticationFailed")), ErrorCode::access_denied);
  EXPECT_EQ(code(refusal(403, "AuthorizationPermissionMismatch")), ErrorCode::access_denied);
  EXPECT_EQ(code(refusal(409, "BlobArchived")), ErrorCode::io);
  EXPECT_THAT(service
                  ->classify(FakeStoreEnvironment::answer(
                      403,
                      "<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>Request "
                      "date header too old"
                      "</AuthenticationErrorDetail></Error>"))
                  .error->what(),
              HasSubstr("clock"));
  config.anon = true;
  service = open();
  EXPECT_EQ(code(refusal(404, "ResourceNotFound")), ErrorCode::access_denied);
  EXPECT_EQ(code(refusal(409, "PublicAccessNotPermitted")), ErrorCode::access_denied);
  EXPECT_EQ(service->classify(refusal(404, "BlobNotFound")).kind, Verdict::missing);
}

}  // namespace azure_test
}  // namespace batchfs
