#include "engine/store/cloud/gcs_credentials.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "engine/base/json.h"
#include "engine/base/strings.h"
#include "engine/store/cloud/signing/crypto.h"
#include "engine/store/http/query.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace gcs_credentials_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::string make_key() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string from_base64url(std::string text) {
  for (char& c : text)
    if (c == '-')
      c = '+';
    else if (c == '_')
      c = '/';
  while (text.size() % 4 != 0) text += '=';
  return from_base64(text);
}

struct GcsCredentialsTest : testing::Test {
  FakeStoreEnvironment fake;
  GcsCredentialsTest() {
    fake.variables["HOME"] = "/h";
    fake.files["/sys/class/dmi/id/sys_vendor"] = {"QEMU\n"};
  }
  std::string token() { return GcsCredentials(fake.environment(), "").token().value_or("none"); }
  void use_file(const std::string& text) {
    fake.variables["GOOGLE_APPLICATION_CREDENTIALS"] = "/key.json";
    fake.files["/key.json"] = {text};
  }
};

TEST_F(GcsCredentialsTest, NowhereMeansNone) {
  EXPECT_EQ(token(), "none");
  EXPECT_TRUE(fake.requests.empty());
}

TEST_F(GcsCredentialsTest, ATokenFromTheEnvironment) {
  use_file("{}");
  fake.variables["CLOUDSDK_AUTH_ACCESS_TOKEN"] = "cloudsdk";
  EXPECT_EQ(token(), "cloudsdk");
  fake.variables["GOOGLE_OAUTH_ACCESS_TOKEN"] = "oauth";
  EXPECT_EQ(token(), "oauth");
}

TEST_F(GcsCredentialsTest, AServiceAccountsAssertion) {
  const std::vector<std::string> parts =
      split(service_account_assertion("me@project", "kid1", make_key(),
                                      "https://oauth2.googleapis.com/token", false, fake.time),
            '.');
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(from_base64url(parts[0]), R"({"alg":"RS256","typ":"JWT","kid":"kid1"})");
  EXPECT_EQ(from_base64url(parts[1]),
            R"({"iss":"me@project","scope":"https://www.googleapis.com/auth/devstorage.read_only",)"
            R"("aud":"https://oauth2.googleapis.com/token","iat":1440938160,"exp":1440941760})");
  EXPECT_EQ(from_base64url(parts[2]).size(), 256U);
}

TEST_F(GcsCredentialsTest, AnAssertionForWriting) {
  const std::string claims =
      split(service_account_assertion("me@project", "", make_key(), "https://t", true, fake.time),
            '.')[1];
  EXPECT_EQ(JsonRef(parse_json(from_base64url(claims), ""), "").at("scope").string(),
            "https://www.googleapis.com/auth/devstorage.read_write");
}

TEST_F(GcsCredentialsTest, AServiceAccount) {
  use_file(Json{{"type", "service_account"},
                {"client_email", "me@project"},
                {"private_key", make_key()},
                {"token_uri", "https://oauth2.googleapis.com/token"}}
               .dump());
  fake.answers["POST https://oauth2.googleapis.com/token"] = {
      200, R"({"access_token":"at","expires_in":3600,"token_type":"Bearer"})"};
  GcsCredentials credentials(fake.environment(), "");
  EXPECT_EQ(credentials.token(), "at");
  EXPECT_EQ(credentials.token(), "at");
  ASSERT_EQ(fake.requests.size(), 1U);
  const QueryParameters form = decode_query(fake.requests[0].body);
  ASSERT_EQ(form.size(), 2U);
  EXPECT_EQ(form[0], (std::pair<std::string, std::string>(
                         "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")));
  fake.time += std::chrono::minutes(56);
  credentials.token();
  EXPECT_EQ(fake.requests.size(), 2U);
}

TEST_F(GcsCredentialsTest, AnAuthorizedUser) {
  fake.files["/h/.config/gcloud/application_default_credentials.json"] = {
      R"({"type":"authorized_user","client_id":"id","client_secret":"se/cret","refresh_token":"1//x"})"};
  fake.answers["POST https://oauth2.googleapis.com/token"] = {
      200, R"({"access_token":"user","expires_in":3599})"};
  EXPECT_EQ(token(), "user");
  EXPECT_THAT(decode_query(fake.requests[0].body),
              ElementsAre(Pair("grant_type", "refresh_token"), Pair("client_id", "id"),
                          Pair("client_secret", "se/cret"), Pair("refresh_token", "1//x")));
}

TEST_F(GcsCredentialsTest, TheMetadataServer) {
  fake.files["/sys/class/dmi/id/sys_vendor"] = {"Google\n"};
  EXPECT_EQ(token(), "none");
  StoreEnvironment environment = fake.environment();
  HttpHeaders headers{{"metadata-flavor", "Google"}};
  environment.fetch = [&](HttpRequest request) {
    EXPECT_EQ(request.url,
              "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token");
    EXPECT_THAT(request.headers, ElementsAre(Pair("Metadata-Flavor", "Google")));
    return FakeStoreEnvironment::answer(200, R"({"access_token":"vm","expires_in":3599})", headers);
  };
  EXPECT_EQ(GcsCredentials(environment, "").token(), "vm");
  headers.clear();  // another cloud's server at that address
  EXPECT_EQ(GcsCredentials(environment, "").token(), std::nullopt);
}

TEST_F(GcsCredentialsTest, RefusalsAndMistakesRepeatNoSecret) {
  const auto failure = [&](ErrorCode code) {
    const Error error = error_of([&] { token(); });
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("HUSH")));
    return std::string(error.what());
  };
  const std::string user =
      R"({"type":"authorized_user","client_id":"i","client_secret":"HUSH","refresh_token":"HUSH"})";
  use_file(user);
  fake.answers["POST https://oauth2.googleapis.com/token"] = {
      400, R"({"error":"invalid_grant","error_description":"HUSH"})"};
  EXPECT_THAT(failure(ErrorCode::access_denied), HasSubstr("invalid_grant"));
  for (const char* body :
       {"", "HUSH", "[]", "{}", R"({"access_token":3})", R"({"access_token":"HUSH\r\nX: y"})"}) {
    fake.answers["POST https://oauth2.googleapis.com/token"] = {200, body};
    failure(ErrorCode::access_denied);
  }
  use_file(
      R"({"type":"authorized_user","token_uri":"http://evil.example/","client_id":"i","client_secret":"HUSH","refresh_token":"HUSH"})");
  EXPECT_THAT(failure(ErrorCode::invalid_argument), HasSubstr("https"));
  use_file(R"({"type":"service_account","client_email":"e","private_key":"HUSH"})");
  failure(ErrorCode::invalid_argument);
  use_file(R"({"type":"external_account"})");
  EXPECT_THAT(failure(ErrorCode::not_supported), HasSubstr("external_account"));
  use_file("HUSH");
  failure(ErrorCode::invalid_argument);
  fake.files.erase("/key.json");
  failure(ErrorCode::not_found);
}

}  // namespace gcs_credentials_test
}  // namespace batchfs
