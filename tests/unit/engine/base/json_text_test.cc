#include "engine/base/json_text.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace {

TEST(JsonText, IsIndentedOrOneLine) {
  const Json json = {{"b", {1, 2}}, {"a", "ü"}};
  EXPECT_EQ(json_text(json, -1), R"({"b":[1,2],"a":"ü"})");
  EXPECT_EQ(json_text(json), "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": \"ü\"\n}");
}

TEST(JsonText, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(json_text(Json("latin\xe9"), -1), "\"latin\xef\xbf\xbd\"");
  EXPECT_EQ(json_text({{"\xff", 1}}, -1), "{\"\xef\xbf\xbd\":1}");
}

}  // namespace
}  // namespace batchfs
