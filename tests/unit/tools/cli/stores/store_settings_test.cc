#include "tools/cli/stores/store_settings.h"

#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace store_settings_test {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  StoreOptions options;
  try {
    add_store_setting(options, text);
    check_store_settings(options);
  } catch (const Error& error) {
    return error.why();
  }
  return "";
}

TEST(StoreSettings, AreOfOneStoreOrOfItsSeries) {
  StoreOptions options;
  options.others = {{"rain", "u"}, {"era.1979", "v"}, {"era.1980", "w"}};
  options.series = {{"era", {"era.1979", "era.1980"}}};
  add_store_setting(options, "rain.endpoint=http://a/b=c");
  add_store_setting(options, "rain.anon");
  add_store_setting(options, "era.1980.retries=7");
  add_store_setting(options, "era.retries=5");
  EXPECT_NO_THROW(check_store_settings(options));
  StoreOptions rain, first, second;
  apply_store_settings(options, "rain", rain);
  apply_store_settings(options, "era.1979", first);
  apply_store_settings(options, "era.1980", second);
  EXPECT_TRUE(rain.config.anon);
  EXPECT_EQ(rain.config.endpoint, "http://a/b=c");
  EXPECT_FALSE(first.config.anon);
  EXPECT_EQ(first.config.retries, 5);
  EXPECT_EQ(second.config.retries, 7);
}

TEST(StoreSettings, RefusesWhatNoStoreCanHave) {
  EXPECT_THAT(refusal("anon"), HasSubstr("is not NAME.OPTION=VALUE"));
  EXPECT_THAT(refusal("rain.memory=1G"), HasSubstr("'memory' is not an option of a single store"));
  EXPECT_THAT(refusal("rain.retries=many"), HasSubstr("retries"));
  EXPECT_THAT(refusal("rain.anon"), HasSubstr("no store 'rain' is given"));
}

}  // namespace store_settings_test
}  // namespace batchfs
