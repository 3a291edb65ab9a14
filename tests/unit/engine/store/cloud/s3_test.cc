#include "engine/store/cloud/s3.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace s3_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct S3Test : testing::Test {
  FakeStoreEnvironment fake;
  StoreConfig config;

  S3Test() {
    fake.variables = {{"HOME", "/h"},
                      {"AWS_ACCESS_KEY_ID", "AKID"},
                      {"AWS_SECRET_ACCESS_KEY", "HUSH"},
                      {"AWS_EC2_METADATA_DISABLED", "true"}};
  }
  std::shared_ptr<WritableService> open(const std::string& url = "s3://bucket/a b.zarr") {
    return make_s3_service(url, config, fake.environment());
  }
  std::string url_of(const std::string& url, const std::string& key = "k") {
    return open(url)->get(key).url;
  }

  static std::string authorization(ObjectService& service, HttpRequest request) {
    service.authorize(request);
    const std::string* value = nullptr;
    for (const auto& [name, text] : request.headers)
      if (name == "Authorization") value = &text;
    return value == nullptr ? "" : *value;
  }
  static HttpResponse refusal(int status, const std::string& code, const std::string& more = "") {
    return FakeStoreEnvironment::answer(status, "<?xml version=\"1.0\"?>\n<Error><Code>" + code +
                                                    "</Code><Message>m</Message>" + more +
                                                    "</Error>");
  }
};

TEST_F(S3Test, VirtualHostedAndPathStyle) {
  EXPECT_EQ(url_of("s3://bucket/a b.zarr", "dt=1/0.0"),
            "https://bucket.s3.amazonaws.com/a%20b.zarr/dt%3D1/0.0");
  EXPECT_EQ(url_of("s3a://bucket"), "https://bucket.s3.amazonaws.com/k");
  EXPECT_EQ(url_of("s3://my.bucket/p"), "https://s3.amazonaws.com/my.bucket/p/k");
  config.region = "eu-west-1";
  EXPECT_EQ(url_of("s3://bucket/p"), "https://bucket.s3.eu-west-1.amazonaws.com/p/k");
  config.region = "cn-north-1";
  EXPECT_EQ(url_of("s3://my.bucket/p"), "https://s3.cn-north-1.amazonaws.com.cn/my.bucket/p/k");
  config.endpoint = "http://localhost:9000/";
  EXPECT_EQ(url_of("s3://bucket/p"), "http://localhost:9000/bucket/p/k");
  fake.files["/h/.aws/config"] = {"[default]\ns3 =\n  addressing_style = virtual\n"};
  EXPECT_EQ(url_of("s3://bucket/p"), "http://bucket.localhost:9000/p/k");
}

TEST_F(S3Test, WritesObjectsAndParts) {
  const auto service = open("s3://bucket/p");
  const std::string object = "https://bucket.s3.amazonaws.com/p/k";
  HttpRequest request = service->put("k", "bytes");
  EXPECT_EQ(request.method + " " + request.url + " " + request.body, "PUT " + object + " bytes");
  EXPECT_EQ(service->remove("k").method, "DELETE");
  request = *service->begin_parts("k");
  EXPECT_EQ(request.method + " " + request.url, "POST " + object + "?uploads=");
  const auto answer = [](const std::string& body) {
    return FakeStoreEnvironment::answer(200, body, {{"etag", "\"a&b\""}});
  };
  EXPECT_EQ(service->upload_name(answer("<InitiateMultipartUploadResult><UploadId>x/1</UploadId>"
                                        "</InitiateMultipartUploadResult>")),
            "x/1");
  EXPECT_EQ(error_of([&] { service->upload_name(answer("<html/>")); }).code(), ErrorCode::corrupt);
  request = service->put_part("k", "x/1", 0, "bytes");
  EXPECT_EQ(request.url, object + "?partNumber=1&uploadId=x%2F1");
  EXPECT_EQ(service->part_name(answer(""), 0), "\"a&b\"");
  EXPECT_EQ(error_of([&] { service->part_name({}, 0); }).code(), ErrorCode::corrupt);
  request = service->join_parts("k", "x/1", {"\"a&b\"", "c"});
  EXPECT_EQ(request.method + " " + request.url, "POST " + object + "?uploadId=x%2F1");
  EXPECT_THAT(request.body,
              HasSubstr("<Part><PartNumber>1</PartNumber><ETag>\"a&amp;b\"</ETag></Part>"
                        "<Part><PartNumber>2</PartNumber><ETag>c</ETag></Part>"));
  service->check_joined(answer("<CompleteMultipartUploadResult/>"));
  const Error late = error_of([&] { service->check_joined(refusal(200, "InternalError")); });
  EXPECT_EQ(late.code(), ErrorCode::io);
  EXPECT_THAT(late.what(), HasSubstr("InternalError"));
  request = *service->drop_parts("k", "x/1");
  EXPECT_EQ(request.method + " " + request.url, "DELETE " + object + "?uploadId=x%2F1");
}

TEST_F(S3Test, NearestSettingWins) {
  const auto region = [&] {
    return resolve_s3_place("s3://bucket", config, fake.environment(),
                            read_aws_profile(fake.environment(), ""),
                            ConfigFile(fake.environment()))
        .region;
  };
  EXPECT_EQ(region(), "");
  fake.files["/h/.aws/config"] = {"[default]\nregion = profile\n"};
  EXPECT_EQ(region(), "profile");
  fake.files["/h/.config/batchfs/config.json"] = {
      R"({"s3": {"region": "settings", "endpoint": "https://settings"}})"};
  EXPECT_EQ(region(), "settings");
  fake.variables["AWS_DEFAULT_REGION"] = "default";
  EXPECT_EQ(region(), "default");
  fake.variables["AWS_REGION"] = "environment";
  EXPECT_EQ(region(), "environment");
  config.region = "option";
  EXPECT_EQ(region(), "option");
  EXPECT_EQ(url_of("s3://bucket"), "https://settings/bucket/k");
  fake.variables["AWS_ENDPOINT_URL"] = "https://all";
  EXPECT_EQ(url_of("s3://bucket"), "https://all/bucket/k");
  fake.variables["AWS_ENDPOINT_URL_S3"] = "https://s3only";
  EXPECT_EQ(url_of("s3://bucket"), "https://s3only/bucket/k");
}

TEST_F(S3Test, WhatCannotBeIsRefused) {
  for (const char* url :
       {"s3://b", "s3://a..b/c", "s3://arn:aws:s3:us-east-1:1:accesspoint/x", "s3://bu cket/c"})
    EXPECT_EQ(error_of([&] { open(url); }).code(), ErrorCode::invalid_argument) << url;
  EXPECT_EQ(error_of([&] { open("s3://x--use1-az4--x-s3/c"); }).code(), ErrorCode::not_supported);
  config.region = "a.evil.example/";
  EXPECT_EQ(error_of([&] { open(); }).code(), ErrorCode::invalid_argument);
}

// The signature is botocore 1.44.5's for this URL, time and these keys.
TEST_F(S3Test, Signs) {
  fake.variables["AWS_SECRET_ACCESS_KEY"] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  fake.variables["AWS_ACCESS_KEY_ID"] = "AKIDEXAMPLE";
  fake.variables["AWS_SESSION_TOKEN"] = "SESSION/token+==";
  fake.variables["AWS_REQUEST_PAYER"] = "requester";
  config.endpoint = "http://127.0.0.1:9000";
  const auto service = open("s3://bucket/a=b");
  EXPECT_THAT(authorization(*service, service->get(".zarray")),
              testing::EndsWith(
                  "Signature=1c96a0d15bc7b4ac9836fc517d7b51200691a09cf3306e58ebe6c0900a5f9133"));
  HttpRequest head = service->head(".zarray");
  EXPECT_EQ(head.method, "HEAD");
  EXPECT_FALSE(head.follow_redirects);
  EXPECT_NE(authorization(*service, head), authorization(*service, service->get(".zarray")));
}

TEST_F(S3Test, AnonymousByOptionAndForWantOfKeys) {
  config.anon = true;
  auto service = open();
  EXPECT_EQ(authorization(*service, service->get("k")), "");
  EXPECT_THAT(service->classify(refusal(403, "AccessDenied")).kind, Verdict::moved);
  config.anon = false;
  fake.variables.erase("AWS_ACCESS_KEY_ID");
  fake.variables.erase("AWS_SECRET_ACCESS_KEY");
  service = open();
  EXPECT_EQ(authorization(*service, service->get("k")), "");
}

TEST_F(S3Test, ListsPages) {
  const auto service = open("s3://bucket/a b");
  EXPECT_EQ(service->list("", "").url,
            "https://bucket.s3.amazonaws.com/?list-type=2&delimiter=%2F&prefix=a%20b%2F");
  EXPECT_EQ(service->list("t+m", "1/=").url,
            "https://bucket.s3.amazonaws.com/"
            "?list-type=2&delimiter=%2F&prefix=a%20b%2Ft%2Bm%2F&continuation-token=1%2F%3D");
  EXPECT_EQ(open("s3://bucket")->list("", "").url,
            "https://bucket.s3.amazonaws.com/?list-type=2&delimiter=%2F");
  const HttpResponse answer =
      FakeStoreEnvironment::answer(200, R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix>a b/</Prefix>
<IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
<Contents><Key>a b/</Key><Size>0</Size></Contents><Contents><Key>a b/.zattrs</Key></Contents>
<Contents><Key>a b/x &amp; &lt;y&gt;</Key></Contents><Contents><Key>a b/ </Key></Contents>
<CommonPrefixes><Prefix>a b/t2m/</Prefix></CommonPrefixes></ListBucketResult>)");
  const ObjectService::Page page = service->parse_list("", answer);
  EXPECT_EQ(page.continuation, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
  ASSERT_EQ(page.entries.size(), 4U);
  EXPECT_EQ(page.entries[0].name, "t2m");
  EXPECT_TRUE(page.entries[0].is_prefix);
  EXPECT_EQ(page.entries[1].name, ".zattrs");
  EXPECT_FALSE(page.entries[1].is_prefix);
  EXPECT_EQ(page.entries[2].name, "x & <y>");
  EXPECT_EQ(page.entries[3].name, " ");
}

TEST_F(S3Test, AListingOfAllDepthsTellsVersions) {
  const auto service = open("s3://bucket/a b/");
  EXPECT_EQ(service->list_versions("t", "1/=")->url,
            "https://bucket.s3.amazonaws.com/"
            "?list-type=2&prefix=a%20b%2Ft%2F&continuation-token=1%2F%3D");
  const HttpResponse answer =
      FakeStoreEnvironment::answer(200, R"(<ListBucketResult><IsTruncated>true</IsTruncated>
<NextContinuationToken>2</NextContinuationToken>
<Contents><Key>a b/t/c/0/1</Key><ETag>&quot;0a1b-2&quot;</ETag><Size>77</Size></Contents>
<Contents><Key>a b/t/zarr.json</Key><Size>5</Size></Contents></ListBucketResult>)");
  const ObjectService::VersionPage page = service->parse_versions("t", answer);
  EXPECT_EQ(page.continuation, "2");
  ASSERT_EQ(page.objects.size(), 2u);
  EXPECT_EQ(page.objects[0].key, "t/c/0/1");
  EXPECT_EQ(page.objects[0].version, "\"0a1b-2\"");
  EXPECT_EQ(page.objects[0].size, 77u);
  EXPECT_EQ(page.objects[1].version, "");
  EXPECT_EQ(error_of([&] { service->parse_versions("u", answer); }).code(), ErrorCode::corrupt);
}

TEST_F(S3Test, WhatIsNoListingIsCorrupt) {
  const auto service = open("s3://bucket/p");
  for (const char* body :
       {"", "<html><body>hello</body></html>", "<ListBucketResult>", "{}",
        "<ListBucketResult><Contents><Key>other/x</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>p/x/y</Key></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"})
    EXPECT_EQ(
        error_of([&] { service->parse_list("", FakeStoreEnvironment::answer(200, body)); }).code(),
        ErrorCode::corrupt)
        << body;
  EXPECT_TRUE(service->parse_list("", FakeStoreEnvironment::answer(200, "<ListBucketResult/>"))
                  .entries.empty());
}

TEST_F(S3Test, ErrorsMeanWhatTheyMean) {
  const auto service = open();
  const auto kind = [&](const HttpResponse& response) { return service->classify(response).kind; };
  EXPECT_EQ(kind(FakeStoreEnvironment::answer(200, "")), Verdict::ok);
  EXPECT_EQ(kind(FakeStoreEnvironment::answer(206, "")), Verdict::ok);
  EXPECT_EQ(kind(refusal(404, "NoSuchKey")), Verdict::missing);
  EXPECT_EQ(kind(FakeStoreEnvironment::answer(404, "")), Verdict::missing);
  EXPECT_EQ(kind(refusal(503, "SlowDown")), Verdict::retry);
  EXPECT_EQ(kind(refusal(500, "InternalError")), Verdict::retry);
  EXPECT_EQ(kind(FakeStoreEnvironment::answer(503, "<html>")), Verdict::retry);
  EXPECT_EQ(kind(refusal(400, "RequestTimeout")), Verdict::retry);
  const auto failure = [&](const HttpResponse& response) {
    const Verdict verdict = service->classify(response);
    EXPECT_EQ(verdict.kind, Verdict::failed);
    EXPECT_THAT(verdict.error->what(), Not(HasSubstr("HUSH")));
    return *verdict.error;
  };
  EXPECT_EQ(failure(refusal(404, "NoSuchBucket")).code(), ErrorCode::not_found);
  EXPECT_EQ(failure(refusal(403, "SignatureDoesNotMatch")).code(), ErrorCode::access_denied);
  EXPECT_EQ(failure(refusal(403, "InvalidAccessKeyId")).code(), ErrorCode::access_denied);
  EXPECT_THAT(failure(refusal(403, "RequestTimeTooSkewed")).what(), HasSubstr("clock"));
  EXPECT_EQ(failure(refusal(403, "InvalidObjectState")).code(), ErrorCode::io);
  EXPECT_THAT(failure(refusal(403, "SomethingNew")).what(), HasSubstr("SomethingNew"));
  EXPECT_THAT(failure(refusal(400, "EntityTooStrange")).what(), HasSubstr("EntityTooStrange"));
}

TEST_F(S3Test, TheBucketTellsItsRegion) {
  auto service = open("s3://bucket/p");
  HttpResponse answer = refusal(301, "PermanentRedirect");
  answer.headers = {{"x-amz-bucket-region", "ap-southeast-2"}};
  EXPECT_EQ(service->classify(answer).kind, Verdict::moved);
  EXPECT_THAT(service->get("k").url, StartsWith("https://bucket.s3.ap-southeast-2.amazonaws.com/"));
  EXPECT_THAT(authorization(*service, service->get("k")), HasSubstr("/ap-southeast-2/s3/"));

  service = open("s3://bucket/p");
  EXPECT_EQ(
      service->classify(refusal(400, "AuthorizationHeaderMalformed", "<Region>eu-west-3</Region>"))
          .kind,
      Verdict::moved);
  EXPECT_THAT(service->get("k").url, StartsWith("https://bucket.s3.eu-west-3.amazonaws.com/"));

  // A HEAD has no body.
  service = open("s3://bucket/p");
  EXPECT_EQ(
      service
          ->classify(FakeStoreEnvironment::answer(400, "", {{"x-amz-bucket-region", "eu-west-3"}}))
          .kind,
      Verdict::moved);

  for (const char* region : {"", "evil.example/", "EU"}) {
    service = open("s3://bucket/p");
    const Verdict verdict =
        service->classify(FakeStoreEnvironment::answer(301, "", {{"x-amz-bucket-region", region}}));
    EXPECT_EQ(verdict.kind, Verdict::failed) << region;
    EXPECT_THAT(verdict.error->what(), HasSubstr("--region"));
  }
}

struct S3ProbeTest : S3Test {
  std::vector<HttpResponse> answers;  // to all requests, in turn
  std::vector<HttpRequest> fetched;

  std::shared_ptr<ObjectService> open_probing() {
    StoreEnvironment environment = fake.environment();
    environment.fetch = [this](HttpRequest request) {
      fetched.push_back(request);
      if (fetched.size() > answers.size()) throw Error(ErrorCode::io, "no answer");
      return std::move(answers[fetched.size() - 1]);
    };
    return make_s3_service("s3://bucket/p", config, environment);
  }
};

TEST_F(S3ProbeTest, ForbiddenIsMissingWhereMissingIsForbidden) {
  const auto service = open_probing();
  answers.push_back(refusal(403, "AccessDenied"));
  EXPECT_EQ(service->classify(FakeStoreEnvironment::answer(403, "")).kind, Verdict::moved);
  EXPECT_NE(authorization(*service, service->head("k")), "");
  ASSERT_EQ(fetched.size(), 1U);
  EXPECT_THAT(fetched[0].url, HasSubstr("/p/.batchfs-probe-"));
  EXPECT_EQ(service->classify(FakeStoreEnvironment::answer(403, "")).kind, Verdict::missing);
  // A refused listing is not an empty listing.
  HttpResponse listing = refusal(403, "AccessDenied");
  listing.effective_url = service->list("", "").url;
  EXPECT_EQ(service->classify(listing).kind, Verdict::failed);
  authorization(*service, service->get("k"));
  EXPECT_EQ(fetched.size(), 1U);  // once
}

TEST_F(S3ProbeTest, ForbiddenIsForbiddenWhereMissingIsMissing) {
  const auto service = open_probing();
  answers.push_back(refusal(404, "NoSuchKey"));
  EXPECT_EQ(service->classify(refusal(403, "AccessDenied")).kind, Verdict::moved);
  authorization(*service, service->get("k"));
  const Verdict verdict = service->classify(refusal(403, "AccessDenied"));
  EXPECT_EQ(verdict.kind, Verdict::failed);
  EXPECT_EQ(verdict.error->code(), ErrorCode::access_denied);
}

TEST_F(S3ProbeTest, TheProbeTellsWhyAHeadWasRefused) {
  const auto service = open_probing();
  answers.push_back(refusal(403, "SignatureDoesNotMatch"));
  EXPECT_EQ(service->classify(FakeStoreEnvironment::answer(403, "")).kind, Verdict::moved);
  authorization(*service, service->head("k"));
  const Verdict verdict = service->classify(FakeStoreEnvironment::answer(403, ""));
  EXPECT_EQ(verdict.kind, Verdict::failed);
  EXPECT_THAT(verdict.error->what(), HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(S3ProbeTest, ThePermissionInTheMessageDecides) {
  const auto service = open_probing();
  const auto denied = [](const char* permission) {
    return FakeStoreEnvironment::answer(
        403, std::string("<Error><Code>AccessDenied</Code><Message>not authorized to perform: ") +
                 permission + " on resource</Message></Error>");
  };
  EXPECT_EQ(service->classify(denied("s3:ListBucket")).kind, Verdict::missing);
  EXPECT_EQ(service->classify(denied("s3:GetObject")).kind, Verdict::failed);
  EXPECT_EQ(service->classify(denied("kms:Decrypt")).kind, Verdict::failed);
  EXPECT_TRUE(fetched.empty());
}

TEST_F(S3ProbeTest, AnExpiredTokenIsFetchedAnewOnce) {
  fake.variables["AWS_SESSION_TOKEN"] = "first";
  const auto service = open_probing();
  const auto token = [&] {
    HttpRequest request = service->get("k");
    service->authorize(request);
    return *find_header(request.headers, "x-amz-security-token");
  };
  EXPECT_EQ(token(), "first");
  fake.variables["AWS_SESSION_TOKEN"] = "second";
  EXPECT_EQ(token(), "first");
  EXPECT_EQ(service->classify(refusal(400, "ExpiredToken")).kind, Verdict::moved);
  EXPECT_EQ(token(), "second");
  fake.variables["AWS_SESSION_TOKEN"] = "too early";
  EXPECT_EQ(service->classify(refusal(400, "ExpiredToken")).kind, Verdict::moved)
      << "of the first token";
  EXPECT_EQ(token(), "second");
  fake.variables["AWS_SESSION_TOKEN"] = "second";
  fake.time += std::chrono::seconds(10);
  EXPECT_EQ(service->classify(refusal(400, "ExpiredToken")).kind, Verdict::moved);
  EXPECT_EQ(token(), "second");  // no new token: it stays expired
  const Verdict verdict = service->classify(refusal(400, "ExpiredToken"));
  EXPECT_EQ(verdict.kind, Verdict::failed);
  EXPECT_THAT(verdict.error->what(), HasSubstr("expired"));
  fake.variables["AWS_SESSION_TOKEN"] = "third";
  fake.time += std::chrono::minutes(1);
  EXPECT_EQ(service->classify(refusal(400, "ExpiredToken")).kind, Verdict::moved);
  EXPECT_EQ(token(), "third");
}

}  // namespace s3_test
}  // namespace batchfs
