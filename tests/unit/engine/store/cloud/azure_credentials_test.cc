#include "engine/store/cloud/azure_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/store/cloud/signing/crypto.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace azure_credentials_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

// The emulator's published key.
constexpr const char* kKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

HttpRequest dated(const std::string& method, const std::string& url) {
  HttpRequest request;
  request.method = method;
  request.url = url;
  request.headers = {{"x-ms-version", "2021-12-02"},
                     {"x-ms-date", "Sun, 30 Aug 2015 12:36:00 GMT"}};
  return request;
}

// The values are those of azure-storage-blob 12.31.1 (SharedKeyCredentialPolicy).
TEST(AzureSharedKey, SignsAsTheOfficialLibrary) {
  const std::string key = from_base64(kKey);
  EXPECT_EQ(
      azure_shared_key(
          dated("GET",
                "https://myaccount.blob.core.windows.net/container/a%20b.zarr/dt%3D1/%C3%A9%2B0.0"),
          "myaccount", key),
      "SharedKey myaccount:gQv5902yHXYGCLRkuc4s6xqyBLodAIdn62a4x6RbUcM=");
  EXPECT_EQ(
      azure_shared_key(
          dated("GET",
                "https://myaccount.blob.core.windows.net/container?restype=container&comp=list&"
                "delimiter=%2F&prefix=a%20b%2F&marker=2%21MTA%3D"),
          "myaccount", key),
      "SharedKey myaccount:ztyhmFA2KfSAQa0nVNPLqXLoLv0mxwwwYEtY9gkvv+w=");
  HttpRequest conditional = dated("HEAD", "http://127.0.0.1:10000/devstoreaccount1/c/k");
  conditional.headers.emplace_back("If-Match", "\"0x8D\"");
  EXPECT_EQ(azure_shared_key(conditional, "devstoreaccount1", key),
            "SharedKey devstoreaccount1:Yd8tj1g+xrlvybj1GdVBqKVkdNssxPBdYVXsCvgbNbU=");
}

// The library sends x-ms-range instead; this is HMAC-SHA-256 (Python's) of the documented string.
TEST(AzureSharedKey, SignsTheRange) {
  HttpRequest request = dated("GET", "https://myaccount.blob.core.windows.net/container/k");
  request.range = ByteRange{0, 10};
  EXPECT_EQ(azure_shared_key(request, "myaccount", from_base64(kKey)),
            "SharedKey myaccount:6EXrWx71dZsPy5F6mxoipP4wpdQVj/i+22FP4cYl5Bs=");
}

TEST(AzureSharedKey, SignsTheLengthOfABody) {
  HttpRequest request = dated("PUT", "https://myaccount.blob.core.windows.net/container/k");
  request.headers.emplace_back("Content-Type", "application/octet-stream");
  request.headers.emplace_back("x-ms-blob-type", "BlockBlob");
  request.body = "0123456789";
  EXPECT_EQ(azure_shared_key(request, "myaccount", from_base64(kKey)),
            "SharedKey myaccount:ZQL54PC0AZw271O+ynSwjjm8uZYvt/ygrP0pEZe2E18=");
  request.url += "?comp=block&blockid=MDAwMDAwMDA%3D";
  request.headers.pop_back();
  EXPECT_EQ(azure_shared_key(request, "myaccount", from_base64(kKey)),
            "SharedKey myaccount:uiTduNiKiVXUj6q7g2aSfMoCiUW+z7YbVYaDjH09U7U=");
}

struct AzurePlaceTest : testing::Test {
  FakeStoreEnvironment fake;
  StoreConfig config;
  AzurePlace place(const std::string& url) {
    return resolve_azure_place(url, config, fake.environment(), ConfigFile(fake.environment()));
  }
};

TEST_F(AzurePlaceTest, Urls) {
  fake.variables["AZURE_STORAGE_ACCOUNT_NAME"] = "mine";
  AzurePlace found = place("az://container/a b/dt=1");
  EXPECT_EQ(found.endpoint, "https://mine.blob.core.windows.net");
  EXPECT_EQ(found.container, "container");
  EXPECT_EQ(found.prefix, "a b/dt=1");
  EXPECT_TRUE(found.is_anonymous());
  found = place("az://other.blob.core.windows.net/container/p/q");
  EXPECT_EQ(found.account, "other");
  EXPECT_EQ(found.container, "container");
  EXPECT_EQ(found.prefix, "p/q");
  EXPECT_EQ(found.endpoint, "https://other.blob.core.windows.net");
  EXPECT_EQ(place("az://other.blob.core.chinacloudapi.cn/c").endpoint,
            "https://other.blob.core.chinacloudapi.cn");
  found = place("abfss://container@lake.dfs.core.windows.net/p");
  EXPECT_EQ(found.account + " " + found.container + " " + found.prefix + " " + found.endpoint,
            "lake container p https://lake.blob.core.windows.net");
}

TEST_F(AzurePlaceTest, Endpoints) {
  fake.variables["AZURE_STORAGE_ACCOUNT"] = "mine";
  config.endpoint = "http://localhost:10000";
  EXPECT_EQ(place("az://c/p").endpoint, "http://localhost:10000/mine");
  config.endpoint = "http://localhost:10000/mine/";
  EXPECT_EQ(place("az://c/p").endpoint, "http://localhost:10000/mine");
  config.endpoint = "https://mine.blob.example.org";
  EXPECT_EQ(place("az://c/p").endpoint, "https://mine.blob.example.org");
}

TEST_F(AzurePlaceTest, ConnectionStrings) {
  fake.variables["AZURE_STORAGE_CONNECTION_STRING"] =
      std::string("DefaultEndpointsProtocol=https;AccountName=conn;AccountKey=") + kKey +
      ";EndpointSuffix=core.example.net";
  AzurePlace found = place("az://c/p");
  EXPECT_EQ(found.account, "conn");
  EXPECT_EQ(found.endpoint, "https://conn.blob.core.example.net");
  EXPECT_EQ(base64(found.key), kKey);
  found = place("az://other.blob.core.windows.net/c/p");  // not this account's key
  EXPECT_TRUE(found.is_anonymous());
  EXPECT_EQ(found.endpoint, "https://other.blob.core.windows.net");
  fake.variables["AZURE_STORAGE_CONNECTION_STRING"] = "UseDevelopmentStorage=true";
  found = place("az://c/p");
  EXPECT_EQ(found.endpoint, "http://127.0.0.1:10000/devstoreaccount1");
  EXPECT_EQ(base64(found.key), kKey);
  fake.variables["AZURE_STORAGE_CONNECTION_STRING"] =
      "BlobEndpoint=http://127.0.0.1:1/"
      "acc;AccountName=acc;SharedAccessSignature=sv=2021&sig=a%2Bb%3D";
  found = place("az://c/p");
  EXPECT_EQ(found.endpoint, "http://127.0.0.1:1/acc");
  EXPECT_THAT(found.sas, ElementsAre(Pair("sv", "2021"), Pair("sig", "a+b=")));
}

TEST_F(AzurePlaceTest, NearestRightWins) {
  fake.variables = {{"HOME", "/h"}, {"AZURE_STORAGE_ACCOUNT", "mine"}};
  fake.files["/h/.config/batchfs/config.json"] = {std::string(R"({"azure": {"account_key": ")") +
                                                  kKey + "\"}}"};
  EXPECT_FALSE(place("az://c/p").key.empty());
  fake.variables["AZURE_STORAGE_SAS_TOKEN"] = "?sv=1&sig=x";
  EXPECT_TRUE(place("az://c/p").key.empty());
  EXPECT_THAT(place("az://c/p").sas, ElementsAre(Pair("sv", "1"), Pair("sig", "x")));
  fake.variables["AZURE_STORAGE_ACCOUNT_KEY"] = kKey;
  EXPECT_FALSE(place("az://c/p").key.empty());
  const AzurePlace found = place("az://c/p?sv=2&sr=c&sig=y%3D");
  EXPECT_EQ(found.prefix, "p");
  EXPECT_THAT(found.sas, ElementsAre(Pair("sv", "2"), Pair("sr", "c"), Pair("sig", "y=")));
  config.anon = true;
  EXPECT_TRUE(place("az://c/p?sv=2&sig=y").is_anonymous());
}

TEST_F(AzurePlaceTest, MistakesAreNamedWithoutSecrets) {
  const auto refusal = [&](const std::string& url) {
    const Error error = error_of([&] { place(url); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), Not(HasSubstr("HUSH")));
    return std::string(error.what());
  };
  EXPECT_THAT(refusal("az://container/p"), HasSubstr("AZURE_STORAGE_ACCOUNT_NAME"));
  EXPECT_THAT(refusal("az://Container/p?sv=1&sig=HUSH"), HasSubstr("not a container"));
  refusal("az://c@example.com/p?sig=HUSH");
  refusal("az://account.blob.core.windows.net?sig=HUSH");
  fake.variables["AZURE_STORAGE_ACCOUNT"] = "mine";
  fake.variables["AZURE_STORAGE_ACCOUNT_KEY"] = "HUSH!";
  EXPECT_THAT(refusal("az://c/p"), HasSubstr("base64"));
  fake.variables["AZURE_STORAGE_ACCOUNT_KEY"] = "";
  fake.variables["AZURE_STORAGE_SAS_TOKEN"] = "sv=HUSH";
  EXPECT_THAT(refusal("az://c/p"), HasSubstr("sig"));
  fake.variables["AZURE_STORAGE_ACCOUNT"] = "evil.example/";
  refusal("az://c/p");
}

}  // namespace azure_credentials_test
}  // namespace batchfs
