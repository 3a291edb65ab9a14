#include "engine/store/cloud/aws_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace aws_credentials_test {

using testing::HasSubstr;
using testing::Not;
using testing::Pair;

struct AwsCredentialsTest : testing::Test {
  FakeStoreEnvironment fake;
  std::string profile, region;
  std::optional<AwsKeys> own_keys;

  AwsCredentialsTest() {
    fake.variables["HOME"] = "/h";
    fake.files["/sys/class/dmi/id/sys_vendor"] = {"QEMU\n"};
  }
  void set_profile(const std::string& settings) {
    fake.files["/h/.aws/credentials"] = {"[default]\n" + settings +
                                         "[p]\naws_access_key_id=PID\naws_secret_access_key=PS\n"};
  }
  std::unique_ptr<AwsCredentials> open() {
    const StoreEnvironment environment = fake.environment();
    return std::make_unique<AwsCredentials>(environment, read_aws_profile(environment, profile),
                                            AwsCredentials::Options{profile, region, own_keys});
  }
  /// "id secret token" or "none".
  std::string keys() {
    const auto found = open()->get();
    return found
               ? found->access_key_id + " " + found->secret_access_key + " " + found->session_token
               : "none";
  }
};

TEST_F(AwsCredentialsTest, NowhereMeansNone) {
  EXPECT_EQ(keys(), "none");
  EXPECT_TRUE(fake.requests.empty());  // another vendor's machine: no request
}

TEST_F(AwsCredentialsTest, TheEnvironmentFirst) {
  set_profile("aws_access_key_id=DID\naws_secret_access_key=DS\n");
  fake.variables["AWS_ACCESS_KEY_ID"] = "EID";
  EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::invalid_argument);
  fake.variables["AWS_SECRET_ACCESS_KEY"] = "ES";
  own_keys = AwsKeys{"OID", "OS", ""};
  EXPECT_EQ(keys(), "EID ES ");
  fake.variables["AWS_SESSION_TOKEN"] = "ET";
  EXPECT_EQ(keys(), "EID ES ET");
  profile = "p";  // an option is nearer than the environment
  EXPECT_EQ(keys(), "PID PS ");
}

TEST_F(AwsCredentialsTest, OwnSettingsThenProfile) {
  set_profile("aws_access_key_id=DID\naws_secret_access_key=DS\naws_session_token=DT\n");
  EXPECT_EQ(keys(), "DID DS DT");
  own_keys = AwsKeys{"OID", "OS", "OT"};
  EXPECT_EQ(keys(), "OID OS OT");
}

TEST_F(AwsCredentialsTest, ProfilesThatNeedMoreAreRefusedByName) {
  for (const char* setting : {"role_arn", "credential_process", "sso_session"}) {
    set_profile(std::string(setting) + " = something-SECRET\n");
    const Error error = error_of([&] { keys(); });
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_THAT(error.what(), HasSubstr(setting));
    EXPECT_THAT(error.what(), Not(HasSubstr("SECRET")));
  }
  set_profile("aws_access_key_id=DID\n");
  EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::invalid_argument);
  set_profile("");
  profile = "default";
  EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::not_found);
}

constexpr const char* kAssumed =
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
    "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>WID</AccessKeyId>"
    "<SecretAccessKey>WS</SecretAccessKey><SessionToken>WT</SessionToken>"
    "<Expiration>2015-08-30T13:36:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
    "</AssumeRoleWithWebIdentityResponse>";

TEST_F(AwsCredentialsTest, WebIdentityIsExchangedAndExchangedAgainAheadOfItsEnd) {
  fake.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  fake.variables["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/r";
  fake.files["/token"] = {"eyJ.x+y/=\n"};
  fake.answers["POST https://sts.eu-west-1.amazonaws.com/"] = {200, kAssumed};
  region = "eu-west-1";
  const auto credentials = open();
  EXPECT_EQ(credentials->get()->session_token, "WT");
  EXPECT_EQ(credentials->get()->access_key_id, "WID");
  ASSERT_EQ(fake.requests.size(), 1U);
  EXPECT_EQ(fake.requests[0].body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%"
            "3Arole%2Fr&"
            "RoleSessionName=batchfs&WebIdentityToken=eyJ.x%2By%2F%3D");
  fake.time += std::chrono::minutes(56);
  credentials->get();
  EXPECT_EQ(fake.requests.size(), 2U);
}

TEST_F(AwsCredentialsTest, AWebIdentityThatIsRefused) {
  fake.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  EXPECT_THAT(error_of([&] { keys(); }).what(), HasSubstr("AWS_ROLE_ARN"));
  fake.variables["AWS_ROLE_ARN"] = "r";
  EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::not_found);
  fake.files["/token"] = {"SECRET"};
  fake.answers["POST https://sts.amazonaws.com/"] = {
      400,
      "<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>SECRET</Message></Error></"
      "ErrorResponse>"};
  const Error error = error_of([&] { keys(); });
  EXPECT_EQ(error.code(), ErrorCode::access_denied);
  EXPECT_THAT(error.what(), HasSubstr("ExpiredTokenException"));
  EXPECT_THAT(error.what(), Not(HasSubstr("SECRET")));
  for (const char* body : {"", "<a>", "{}", "<AssumeRoleWithWebIdentityResponse/>"}) {
    fake.answers["POST https://sts.amazonaws.com/"] = {200, body};
    EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::access_denied);
  }
}

TEST_F(AwsCredentialsTest, Container) {
  fake.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials/id";
  fake.answers["GET http://169.254.170.2/v2/credentials/id"] = {
      200,
      R"({"AccessKeyId": "CID", "SecretAccessKey": "CS", "Token": "CT", "Expiration": "2015-08-30T20:00:00Z"})"};
  EXPECT_EQ(keys(), "CID CS CT");
  fake.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "";
  fake.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://169.254.170.23/v1/credentials";
  fake.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/pod-token";
  fake.files["/pod-token"] = {"pod\n"};
  fake.answers["GET http://169.254.170.23/v1/credentials"] = {
      200, R"({"AccessKeyId": "PID", "SecretAccessKey": "PS"})"};
  EXPECT_EQ(keys(), "PID PS ");
  EXPECT_THAT(fake.requests.back().headers, testing::ElementsAre(Pair("Authorization", "pod")));
  fake.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://example.com/steal";
  EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::invalid_argument);
  fake.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1.evil.example/steal";
  EXPECT_EQ(error_of([&] { keys(); }).code(), ErrorCode::invalid_argument);
}

TEST_F(AwsCredentialsTest, InstanceMetadataVersion2) {
  fake.files["/sys/class/dmi/id/sys_vendor"] = {"Amazon EC2\n"};
  EXPECT_EQ(keys(), "none");  // does not connect: no such service
  fake.answers["PUT http://169.254.169.254/latest/api/token"] = {200, "imds-token"};
  const std::string roles = "http://169.254.169.254/latest/meta-data/iam/security-credentials/";
  fake.answers["GET " + roles] = {404, ""};
  EXPECT_EQ(keys(), "none");
  fake.answers["GET " + roles] = {200, "my-role"};
  fake.answers["GET " + roles + "my-role"] = {
      200,
      R"({"Code": "Success", "AccessKeyId": "IID", "SecretAccessKey": "IS", "Token": "IT", "Expiration": "2015-08-30T20:00:00Z"})"};
  EXPECT_EQ(keys(), "IID IS IT");
  EXPECT_THAT(fake.requests.back().headers,
              testing::ElementsAre(Pair("X-aws-ec2-metadata-token", "imds-token")));
  EXPECT_LE(fake.requests.back().timeout, 2);
  fake.answers["GET " + roles + "my-role"] = {200,
                                              R"({"Code": "Failed", "SecretAccessKey": "HUSH"})"};
  EXPECT_THAT(error_of([&] { keys(); }).what(), Not(HasSubstr("HUSH")));
  fake.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  EXPECT_EQ(keys(), "none");
}

}  // namespace aws_credentials_test
}  // namespace batchfs
