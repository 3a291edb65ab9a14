#include "engine/store/cloud/cloud_store.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace cloud_store_test {

struct CloudStoreTest : testing::Test {
  CloudStoreTest() {
    ::setenv("HOME", testing::TempDir().c_str(), 1);
    for (const char* name :
         {"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
          "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "BATCHFS_CONFIG", "XDG_CONFIG_HOME",
          "STORAGE_EMULATOR_HOST", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ENDPOINT"})
      ::unsetenv(name);
    config.anon = true;
  }
  StoreConfig config;
};

TEST_F(CloudStoreTest, EverySchemeOfAService) {
  for (const char* url : {"s3://bucket/p", "s3a://bucket/p"})
    EXPECT_EQ(open_cloud_store(url, config).store->url(), "s3://bucket/p");
  for (const char* url : {"gs://bucket/p", "gcs://bucket/p"})
    EXPECT_EQ(open_cloud_store(url, config).store->url(), "gs://bucket/p");
  for (const char* url :
       {"az://a.blob.core.windows.net/c/p", "azure://a.blob.core.windows.net/c/p",
        "abfs://c@a.dfs.core.windows.net/p", "abfss://c@a.dfs.core.windows.net/p"})
    EXPECT_EQ(open_cloud_store(url, config).store->url(), "az://c/p");
  EXPECT_EQ(error_of([&] { open_cloud_store("ftp://host/p", config); }).code(),
            ErrorCode::not_supported);
  EXPECT_EQ(error_of([&] { open_store("oci://bucket/p"); }).code(), ErrorCode::not_supported);
}

// Otherwise a local cache would return the bytes of one for those of the other.
TEST_F(CloudStoreTest, ServersAndAccountsAreToldApart) {
  const std::string aws = open_cloud_store("s3://bucket/p", config).realm;
  config.endpoint = "http://localhost:9000";
  EXPECT_NE(open_cloud_store("s3://bucket/p", config).realm, aws);
  config.endpoint.clear();
  EXPECT_NE(open_cloud_store("az://a.blob.core.windows.net/c/p", config).realm,
            open_cloud_store("az://b.blob.core.windows.net/c/p", config).realm);
}

}  // namespace cloud_store_test
}  // namespace batchfs
