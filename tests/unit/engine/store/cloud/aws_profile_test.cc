#include "engine/store/cloud/aws_profile.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace aws_profile_test {

constexpr const char* kConfig =
    "# comment\n[default]\nregion = us-west-2\n\n[profile work]\nregion=eu-central-1   # here\n"
    "s3 =\n    addressing_style = path\n  max_concurrent_requests = 20\nendpoint_url = "
    "https://minio.example\n"
    "[profile  other ]\nregion = x\n[sso-session work]\nregion = wrong\n";
constexpr const char* kCredentials =
    "[default]\naws_access_key_id = AKID\naws_secret_access_key = se+cr/et=\n"
    "[work]\r\naws_access_key_id=AKWORK\r\naws_secret_access_key=a#b;c\r\nregion = "
    "from-credentials\r\n";

FakeStoreEnvironment home() {
  FakeStoreEnvironment fake;
  fake.variables["HOME"] = "/home/u";
  fake.files["/home/u/.aws/config"] = {kConfig};
  fake.files["/home/u/.aws/credentials"] = {kCredentials};
  return fake;
}

TEST(AwsProfile, Default) {
  FakeStoreEnvironment fake = home();
  const AwsProfile profile = read_aws_profile(fake.environment(), "");
  EXPECT_EQ(profile.name, "default");
  EXPECT_EQ(profile.get("region"), "us-west-2");
  EXPECT_EQ(profile.get("aws_access_key_id"), "AKID");
  EXPECT_EQ(profile.get("aws_secret_access_key"), "se+cr/et=");
  EXPECT_EQ(profile.get("absent"), "");
}

TEST(AwsProfile, ANamedOneFromBothFiles) {
  FakeStoreEnvironment fake = home();
  const AwsProfile profile = read_aws_profile(fake.environment(), "work");
  EXPECT_EQ(profile.get("region"), "from-credentials");
  EXPECT_EQ(profile.get("aws_secret_access_key"), "a#b;c");
  EXPECT_EQ(profile.get("s3.addressing_style"), "path");
  EXPECT_EQ(profile.get("s3.max_concurrent_requests"), "20");
  EXPECT_EQ(profile.get("endpoint_url"), "https://minio.example");
  EXPECT_EQ(read_aws_profile(fake.environment(), "other").get("region"), "x");
}

TEST(AwsProfile, TheEnvironmentNamesProfileAndFiles) {
  FakeStoreEnvironment fake;
  fake.variables = {
      {"AWS_PROFILE", "p"}, {"AWS_CONFIG_FILE", "/c"}, {"AWS_SHARED_CREDENTIALS_FILE", "/s"}};
  fake.files["/c"] = {"[profile p]\nregion = r\n"};
  fake.files["/s"] = {"[p]\naws_access_key_id = k\n"};
  const AwsProfile profile = read_aws_profile(fake.environment(), "");
  EXPECT_EQ(profile.get("region") + profile.get("aws_access_key_id"), "rk");
}

TEST(AwsProfile, AnAbsentProfileIsAnErrorOnlyWhenItWasNamed) {
  FakeStoreEnvironment fake = home();
  EXPECT_EQ(error_of([&] { read_aws_profile(fake.environment(), "absent"); }).code(),
            ErrorCode::not_found);
  fake.variables["AWS_PROFILE"] = "absent";
  EXPECT_EQ(error_of([&] { read_aws_profile(fake.environment(), ""); }).code(),
            ErrorCode::not_found);
  FakeStoreEnvironment nothing;
  EXPECT_FALSE(read_aws_profile(nothing.environment(), "").exists);
}

TEST(AwsProfile, BrokenFilesDoNoHarm) {
  FakeStoreEnvironment fake = home();
  fake.files["/home/u/.aws/config"] = {
      "[\n]\n=\n[default\nregion\n = 3\n[]\n[profile]\n\n\n  = =\n"};
  fake.files["/home/u/.aws/credentials"] = {std::string("\0[default]\n\xff=\n", 14)};
  EXPECT_EQ(read_aws_profile(fake.environment(), "").get("region"), "");
}

}  // namespace aws_profile_test
}  // namespace batchfs
