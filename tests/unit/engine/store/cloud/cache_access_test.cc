#include "engine/store/cloud/cache_access.h"

#include <gmock/gmock.h>

#include "engine/store/cloud/azure.h"
#include "engine/store/cloud/gcs.h"
#include "engine/store/cloud/http_store.h"
#include "engine/store/cloud/s3.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {

namespace cache_access_test {

using testing::HasSubstr;

struct CacheAccessTest : testing::Test {
  FakeStoreEnvironment fake;
  StoreConfig config;
  std::shared_ptr<HttpClient> client = std::make_shared<HttpClient>();

  CacheAccessTest() { fake.variables["BATCHFS_VIA"] = "http://cache:8090,https://other"; }
  std::shared_ptr<SharedCaches> open(const std::shared_ptr<ObjectService>& service) {
    return shared_caches(config, *service, fake.environment());
  }
  std::string refusal(const std::shared_ptr<ObjectService>& service) {
    const Error error = error_of([&] { open(service); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  std::shared_ptr<ObjectService> web(const std::string& url) {
    return std::make_shared<HttpService>(url, client);
  }
};

TEST_F(CacheAccessTest, ComeFromTheEnvironment) {
  const auto caches = open(web("https://host/x"));
  ASSERT_NE(caches, nullptr);
  EXPECT_EQ(caches->size(), 2u);
  EXPECT_EQ(caches->url(1), "https://other");
  config.revalidate = true;
  EXPECT_EQ(open(web("https://host/x")), nullptr);
  config.revalidate = false;
  fake.variables["BATCHFS_VIA"] = "";
  EXPECT_EQ(open(web("https://host/x")), nullptr);
  fake.variables["BATCHFS_VIA"] = "cache";
  EXPECT_THAT(refusal(web("https://host/x")), HasSubstr("http://HOST:PORT"));
}

TEST_F(CacheAccessTest, TheConfigurationNamesThoseOfOneStore) {
  config.via = {"http://own:1"};
  const auto caches = open(web("https://host/x"));
  ASSERT_NE(caches, nullptr);
  EXPECT_EQ(caches->size(), 1u);
  EXPECT_EQ(caches->url(0), "http://own:1");
  config.via->clear();
  EXPECT_EQ(open(web("https://host/x")), nullptr);
}

TEST_F(CacheAccessTest, TokensAndPasswordsDoNotTravelInClear) {
  EXPECT_THAT(refusal(web("https://me:word@host/x")), HasSubstr("in clear"));
  EXPECT_THAT(refusal(web("https://host/x?signature=s")), HasSubstr("http://cache:8090"));
  fake.variables["GOOGLE_OAUTH_ACCESS_TOKEN"] = "token";
  EXPECT_THAT(refusal(make_gcs_service("gs://b/x", config, fake.environment())),
              HasSubstr("--anon"));
  config.anon = true;
  EXPECT_NE(open(make_gcs_service("gs://b/x", config, fake.environment())), nullptr);
  config.anon = false;
  fake.variables["BATCHFS_VIA"] = "http://127.0.0.1:8090,https://other";
  EXPECT_NE(open(make_gcs_service("gs://b/x", config, fake.environment())), nullptr);
}

TEST_F(CacheAccessTest, SignaturesMay) {
  fake.variables["AWS_ACCESS_KEY_ID"] = "key";
  fake.variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  EXPECT_NE(open(make_s3_service("s3://bucket/x", config, fake.environment())), nullptr);
}

TEST_F(CacheAccessTest, AzuresAccountKeySignsTheRange) {
  fake.variables["AZURE_STORAGE_ACCOUNT"] = "account";
  fake.variables["AZURE_STORAGE_ACCOUNT_KEY"] = "a2V5";
  EXPECT_THAT(refusal(make_azure_service("az://c/x", config, fake.environment())),
              HasSubstr("AZURE_STORAGE_SAS_TOKEN"));
  fake.variables.erase("AZURE_STORAGE_ACCOUNT_KEY");
  fake.variables["AZURE_STORAGE_SAS_TOKEN"] = "sv=1&sig=s";
  EXPECT_THAT(refusal(make_azure_service("az://c/x", config, fake.environment())),
              HasSubstr("in clear"));
}

}  // namespace cache_access_test

}  // namespace batchfs
