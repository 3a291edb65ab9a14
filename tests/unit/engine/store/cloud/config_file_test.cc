#include "engine/store/cloud/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace config_file_test {

using testing::HasSubstr;
using testing::Not;

TEST(ConfigFile, ReadsWhereItIsLookedFor) {
  FakeStoreEnvironment fake;
  EXPECT_EQ(ConfigFile(fake.environment()).text("s3", "region"), "");
  fake.variables["HOME"] = "/h";
  fake.files["/h/.config/batchfs/config.json"] = {
      R"({"s3": {"region": "home", "requester_pays": true, "path_style": false}})"};
  const ConfigFile config(fake.environment());
  EXPECT_EQ(config.text("s3", "region"), "home");
  EXPECT_TRUE(config.flag("s3", "requester_pays"));
  EXPECT_FALSE(config.flag("s3", "path_style"));
  fake.variables["XDG_CONFIG_HOME"] = "/x";
  fake.files["/x/batchfs/config.json"] = {R"({"s3": {"region": "xdg"}})"};
  EXPECT_EQ(ConfigFile(fake.environment()).text("s3", "region"), "xdg");
  fake.variables["BATCHFS_CONFIG"] = "/own";
  EXPECT_EQ(error_of([&] { ConfigFile config_of(fake.environment()); }).code(),
            ErrorCode::not_found);
  fake.files["/own"] = {R"({"azure": {"account": "a"}})"};
  EXPECT_EQ(ConfigFile(fake.environment()).text("azure", "account"), "a");
}

TEST(ConfigFile, SecretsNeedAModeThatKeepsThem) {
  FakeStoreEnvironment fake;
  fake.variables["BATCHFS_CONFIG"] = "/own";
  fake.files["/own"] = {R"({"s3": {"secret_access_key": "HUSH"}})", true};
  const Error error = error_of([&] { ConfigFile config(fake.environment()); });
  EXPECT_EQ(error.code(), ErrorCode::access_denied);
  EXPECT_THAT(error.what(), HasSubstr("chmod 600"));
  EXPECT_THAT(error.what(), Not(HasSubstr("HUSH")));
  fake.files["/own"].others_can_read = false;
  EXPECT_EQ(ConfigFile(fake.environment()).text("s3", "secret_access_key"), "HUSH");
  fake.files["/own"] = {R"({"s3": {"region": "r"}})", true};
  EXPECT_EQ(ConfigFile(fake.environment()).text("s3", "region"), "r");
}

TEST(ConfigFile, MistakesAreNamed) {
  FakeStoreEnvironment fake;
  fake.variables["BATCHFS_CONFIG"] = "/own";
  const auto refusal = [&](const char* text) {
    fake.files["/own"] = {text};
    const Error error = error_of([&] { ConfigFile config(fake.environment()); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text;
    return std::string(error.what());
  };
  EXPECT_THAT(refusal(R"({"s3": {"regoin": "x"}})"), HasSubstr("did you mean 'region'"));
  EXPECT_THAT(refusal(R"({"s4": {}})"), HasSubstr("did you mean 's3'"));
  EXPECT_THAT(refusal(R"({"s3": {"region": 1}})"), HasSubstr("s3.region"));
  EXPECT_THAT(refusal(R"({"s3": {"path_style": "yes"}})"), HasSubstr("true or false"));
  EXPECT_THAT(refusal(R"({"s3": {"region": "a", "region": "b"}})"), HasSubstr("twice"));
  refusal("[]");
  refusal("{");
}

}  // namespace config_file_test
}  // namespace batchfs
