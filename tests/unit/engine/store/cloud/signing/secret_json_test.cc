#include "engine/store/cloud/signing/secret_json.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace secret_json_test {

TEST(SecretJson, ErrorsQuoteNothing) {
  for (const char* text : {"{\"private_key\": \"HUSH\",}", "HUSH", "{\"HUSH", "['HUSH']"}) {
    try {
      parse_secret_json(text, "key.json");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "not valid JSON (key.json)");
    }
  }
  EXPECT_EQ(parse_secret_json("{\"a\": 1}", "key.json")["a"], 1);
}

}  // namespace secret_json_test
}  // namespace batchfs
