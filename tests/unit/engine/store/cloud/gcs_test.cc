#include "engine/store/cloud/gcs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace gcs_test {

using testing::HasSubstr;

struct GcsTest : testing::Test {
  FakeStoreEnvironment fake;
  StoreConfig config;

  GcsTest() { fake.variables = {{"GOOGLE_OAUTH_ACCESS_TOKEN", "first"}}; }
  std::shared_ptr<WritableService> open(const std::string& url = "gs://bucket/a b.zarr") {
    return make_gcs_service(url, config, fake.environment());
  }
  static std::string authorization(ObjectService& service, HttpRequest request) {
    service.authorize(request);
    return request.headers.empty() ? "" : request.headers.back().second;
  }
  static HttpResponse refusal(int status, const std::string& reason,
                              const std::string& message = "m") {
    return FakeStoreEnvironment::answer(status, R"({"error":{"code":1,"message":")" + message +
                                                    R"(","errors":[{"reason":")" + reason +
                                                    R"("}]}})");
  }
};

TEST_F(GcsTest, Requests) {
  const auto service = open();
  EXPECT_EQ(service->url(), "gs://bucket/a b.zarr");
  EXPECT_EQ(
      service->get("dt=1/0.0").url,
      "https://storage.googleapis.com/storage/v1/b/bucket/o/a%20b.zarr%2Fdt%3D1%2F0.0?alt=media");
  EXPECT_EQ(service->list("t+m", "CgI=").url,
            "https://storage.googleapis.com/storage/v1/b/bucket/o?delimiter=%2F&"
            "fields=items%28name%29%2Cprefixes%2CnextPageToken&maxResults=1000&prefix=a%20b.zarr%"
            "2Ft%2Bm%2F&pageToken=CgI%3D");
  EXPECT_EQ(authorization(*service, service->get("k")), "Bearer first");
  config.anon = true;
  EXPECT_EQ(authorization(*open(), service->get("k")), "");
  EXPECT_EQ(error_of([&] { open("gs://Bucket/x"); }).code(), ErrorCode::invalid_argument);
}

TEST_F(GcsTest, WritesAnObjectAtOnce) {
  const auto service = open();
  const HttpRequest request = service->put("dt=1/0.0", "bytes");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url,
            "https://storage.googleapis.com/upload/storage/v1/b/bucket/o?uploadType=media&"
            "name=a%20b.zarr%2Fdt%3D1%2F0.0");
  EXPECT_EQ(request.body, "bytes");
  EXPECT_EQ(service->remove("k").method, "DELETE");
  EXPECT_EQ(service->write_limits().part, 0U);
  EXPECT_FALSE(service->begin_parts("k"));
  EXPECT_EQ(error_of([&] { service->put_part("k", "", 0, ""); }).code(), ErrorCode::internal);
}

TEST_F(GcsTest, EmulatorAndBilling) {
  fake.variables["STORAGE_EMULATOR_HOST"] = "localhost:9023";
  EXPECT_EQ(open("gs://b")->get("k").url, "http://localhost:9023/storage/v1/b/b/o/k?alt=media");
  EXPECT_EQ(authorization(*open("gs://b"), open("gs://b")->get("k")), "");
  config.endpoint = "https://gcs.example/";
  fake.variables["GOOGLE_CLOUD_QUOTA_PROJECT"] = "payer";
  EXPECT_EQ(open("gs://b")->get("k").url,
            "https://gcs.example/storage/v1/b/b/o/k?alt=media&userProject=payer");
}

TEST_F(GcsTest, ListsPages) {
  const auto service = open("gs://bucket/p");
  const ObjectService::Page page = service->parse_list(
      "",
      FakeStoreEnvironment::answer(
          200,
          R"({"nextPageToken":"CgI=","prefixes":["p/t2m/"],"items":[{"name":"p/"},{"name":"p/.zattrs"},{"name":"p/é x"}]})"));
  EXPECT_EQ(page.continuation, "CgI=");
  ASSERT_EQ(page.entries.size(), 3U);
  EXPECT_EQ(page.entries[0].name, "t2m");
  EXPECT_TRUE(page.entries[0].is_prefix);
  EXPECT_EQ(page.entries[1].name, ".zattrs");
  EXPECT_EQ(page.entries[2].name, "é x");
  EXPECT_TRUE(service->parse_list("", FakeStoreEnvironment::answer(200, "{}")).entries.empty());
  for (const char* body :
       {"", "[]", "<html>", R"({"items":3})", R"({"items":[{}]})", R"({"items":[{"name":"q/x"}]})",
        R"({"items":[{"name":"p/x/y"}]})", R"({"nextPageToken":3})"})
    EXPECT_EQ(
        error_of([&] { service->parse_list("", FakeStoreEnvironment::answer(200, body)); }).code(),
        ErrorCode::corrupt)
        << body;
}

TEST_F(GcsTest, AListingOfAllDepthsContainsVersions) {
  const auto service = open();
  EXPECT_EQ(service->list_versions("t", "CgI=")->url,
            "https://storage.googleapis.com/storage/v1/b/bucket/o?"
            "fields=items%28name%2Cetag%2Csize%29%2CnextPageToken&maxResults=1000&"
            "prefix=a%20b.zarr%2Ft%2F&pageToken=CgI%3D");
  const HttpResponse answer = FakeStoreEnvironment::answer(
      200,
      R"({"nextPageToken":"2","items":[{"name":"a b.zarr/t/c/0/1","etag":"CKih16GjycICEAE=",
"size":"77"},{"name":"a b.zarr/t/zarr.json"}]})");
  const ObjectService::VersionPage page = service->parse_versions("t", answer);
  EXPECT_EQ(page.continuation, "2");
  ASSERT_EQ(page.objects.size(), 2U);
  EXPECT_EQ(page.objects[0].key, "t/c/0/1");
  EXPECT_EQ(page.objects[0].version, "CKih16GjycICEAE=");
  EXPECT_EQ(page.objects[0].size, 77U);
  EXPECT_EQ(page.objects[1].version, "");
  EXPECT_EQ(error_of([&] { service->parse_versions("u", answer); }).code(), ErrorCode::corrupt);
  HttpResponse denied = refusal(403, "forbidden");
  denied.effective_url = service->list_versions("t", "")->url;
  EXPECT_EQ(service->classify(denied).error->code(), ErrorCode::access_denied) << "may not list";
}

TEST_F(GcsTest, ErrorsMeanWhatTheyMean) {
  const auto service = open();
  EXPECT_EQ(service->classify(FakeStoreEnvironment::answer(404, "No such object: bucket/k")).kind,
            Verdict::missing);
  EXPECT_EQ(service->classify(FakeStoreEnvironment::answer(429, "")).kind, Verdict::retry);
  EXPECT_EQ(service->classify(refusal(403, "rateLimitExceeded")).kind, Verdict::retry);
  EXPECT_EQ(service->classify(refusal(503, "backendError")).kind, Verdict::retry);
  Verdict verdict =
      service->classify(refusal(404, "notFound", "The specified bucket does not exist."));
  EXPECT_EQ(verdict.kind, Verdict::failed);
  EXPECT_EQ(verdict.error->code(), ErrorCode::not_found);
  verdict = service->classify(
      refusal(400, "required", "Bucket is a requester pays bucket but no user project provided."));
  EXPECT_THAT(verdict.error->what(), HasSubstr("GOOGLE_CLOUD_QUOTA_PROJECT"));
}

TEST_F(GcsTest, ATokenThatIsRefusedIsFetchedAnewOnce) {
  const auto service = open();
  EXPECT_EQ(authorization(*service, service->get("k")), "Bearer first");
  fake.variables["GOOGLE_OAUTH_ACCESS_TOKEN"] = "second";
  EXPECT_EQ(service->classify(refusal(401, "authError")).kind, Verdict::moved);
  EXPECT_EQ(authorization(*service, service->get("k")), "Bearer second");
  const Verdict verdict = service->classify(refusal(401, "authError"));
  EXPECT_EQ(verdict.kind, Verdict::failed);
  EXPECT_EQ(verdict.error->code(), ErrorCode::access_denied);
  fake.time += std::chrono::minutes(5);
  EXPECT_EQ(service->classify(refusal(401, "authError")).kind, Verdict::moved);
}

TEST_F(GcsTest, ForbiddenIsMissingOnlyWhereMissingIsForbidden) {
  for (const auto& [status, meaning] :
       {std::pair(404, Verdict::failed), std::pair(403, Verdict::missing)}) {
    StoreEnvironment environment = fake.environment();
    int probes = 0;
    environment.fetch = [&, answer = status](HttpRequest request) {
      EXPECT_THAT(request.url, HasSubstr("a%20b.zarr%2F.batchfs-probe-"));
      ++probes;
      return refusal(answer, "forbidden");
    };
    const auto service = make_gcs_service("gs://bucket/a b.zarr", config, environment);
    authorization(*service, service->get("k"));
    EXPECT_EQ(service->classify(refusal(403, "forbidden")).kind, Verdict::moved);
    authorization(*service, service->get("k"));
    EXPECT_EQ(service->classify(refusal(403, "forbidden")).kind, meaning);
    HttpResponse listing = refusal(403, "forbidden");
    listing.effective_url = service->list("", "").url;
    EXPECT_EQ(service->classify(listing).kind, Verdict::failed);
    EXPECT_EQ(probes, 1);
  }
}

}  // namespace gcs_test
}  // namespace batchfs
