#include <gmock/gmock.h>

#include "engine/store/cloud/s3.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace s3_place_test {

struct S3PlaceTest : testing::Test {
  FakeStoreEnvironment fake;
  StoreConfig config;

  S3PlaceTest() { fake.variables["HOME"] = "/h"; }
  S3Place place(const std::string& url = "s3://bucket/a/b") {
    return resolve_s3_place(url, config, fake.environment(),
                            read_aws_profile(fake.environment(), config.profile),
                            ConfigFile(fake.environment()));
  }
  void profile(const std::string& text) { fake.files["/h/.aws/config"] = {"[default]\n" + text}; }
  void settings(const std::string& text) { fake.files["/h/.config/batchfs/config.json"] = {text}; }
};

TEST_F(S3PlaceTest, WithoutAnySettingItIsAmazons) {
  const S3Place found = place("s3://bucket/a/b/");
  EXPECT_EQ(found.bucket, "bucket");
  EXPECT_EQ(found.prefix, "a/b");
  EXPECT_EQ(found.endpoint, "");
  EXPECT_EQ(found.region, "");
  EXPECT_FALSE(found.path_style);
  EXPECT_FALSE(found.requester_pays);
  EXPECT_EQ(found.missing, MissingAnswers::find_out);
}

TEST_F(S3PlaceTest, TheNearestEndpointWins) {
  profile("endpoint_url = https://any\n");
  EXPECT_EQ(place().endpoint, "https://any");
  profile("endpoint_url = https://any\ns3 =\n  endpoint_url = https://profile/\n");
  EXPECT_EQ(place().endpoint, "https://profile");
  settings(R"({"s3": {"endpoint": "https://settings:443/x/"}})");
  EXPECT_EQ(place().endpoint, "https://settings/x");
  fake.variables["AWS_ENDPOINT_URL"] = "http://all:80";
  EXPECT_EQ(place().endpoint, "http://all");
  fake.variables["AWS_ENDPOINT_URL_S3"] = "http://s3:81";
  EXPECT_EQ(place().endpoint, "http://s3:81");
  config.endpoint = "http://option";
  EXPECT_EQ(place().endpoint, "http://option");
  for (const char* bad :
       {"ftp://host", "host", "https://user:secret@host", "https://host?x=1", "https://"}) {
    config.endpoint = bad;
    const Error error = error_of([&] { place(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << bad;
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("secret")));
  }
}

TEST_F(S3PlaceTest, TheBucketIsInThePathWhereItCannotBeInTheHostsName) {
  EXPECT_FALSE(place("s3://bucket-1/a").path_style);
  for (const char* url : {"s3://my.bucket/a", "s3://my_bucket", "s3://Bucket"})
    EXPECT_TRUE(place(url).path_style) << url;
  profile("s3 =\n  addressing_style = virtual\n");
  EXPECT_TRUE(place("s3://my.bucket/a").path_style) << "no certificate is for such a name";
}

TEST_F(S3PlaceTest, OtherServersHaveTheBucketInThePathUnlessSomeoneSaysOtherwise) {
  config.endpoint = "https://minio";
  EXPECT_TRUE(place().path_style);
  profile("s3 =\n  addressing_style = virtual\n");
  EXPECT_FALSE(place().path_style);
  config.endpoint = "";
  profile("s3 =\n  addressing_style = path\n");
  EXPECT_TRUE(place().path_style);
  profile("");
  EXPECT_FALSE(place().path_style);
  settings(R"({"s3": {"path_style": true}})");
  EXPECT_TRUE(place().path_style);
}

TEST_F(S3PlaceTest, WhoPays) {
  fake.variables["AWS_REQUEST_PAYER"] = "owner";
  EXPECT_FALSE(place().requester_pays);
  fake.variables["AWS_REQUEST_PAYER"] = "requester";
  EXPECT_TRUE(place().requester_pays);
  fake.variables.erase("AWS_REQUEST_PAYER");
  settings(R"({"s3": {"requester_pays": true}})");
  EXPECT_TRUE(place().requester_pays);
  settings("{}");
  config.requester_pays = true;
  config.missing = MissingAnswers::also_403;
  EXPECT_TRUE(place().requester_pays);
  EXPECT_EQ(place().missing, MissingAnswers::also_403);
}

TEST_F(S3PlaceTest, NamesThatAreNoBucketsAreRefused) {
  const std::string long_name(255, 'b');
  EXPECT_EQ(place("s3://" + long_name + "/a").bucket, long_name);
  for (const std::string& url :
       {std::string("s3://"), std::string("s3:///a"), std::string("s3://ab"), "s3://b" + long_name,
        std::string("s3://a..b"), std::string("s3://bu%20cket"),
        std::string("s3://b\xc3\xbc"
                    "cket"),
        std::string("s3://host:80/a"), std::string("s3://bucket/../a"),
        std::string("s3://bucket/./a")})
    EXPECT_EQ(error_of([&] { place(url); }).code(), ErrorCode::invalid_argument) << url;
  const Error express = error_of([&] { place("s3://data--use1-az4--x-s3/a"); });
  EXPECT_EQ(express.code(), ErrorCode::not_supported);
  EXPECT_THAT(express.what(), testing::HasSubstr("Express"));
}

TEST_F(S3PlaceTest, ARegionIsPartOfAHostsName) {
  for (const char* good : {"us-east-1", "auto", "Region_1"}) {
    config.region = good;
    EXPECT_EQ(place().region, good);
  }
  for (const char* bad : {"a.evil.example/", "x y", "a@b", "a/b", "a\nb", "\xc3\xbc"}) {
    config.region = bad;
    EXPECT_EQ(error_of([&] { place(); }).code(), ErrorCode::invalid_argument) << bad;
  }
}

}  // namespace s3_place_test
}  // namespace batchfs
