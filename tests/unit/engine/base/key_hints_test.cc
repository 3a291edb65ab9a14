#include "engine/base/key_hints.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace key_hints_test {

constexpr KeyHint kHints[] = {{"batch_size", "write \"batch\": {\"size\": 32}"}};

std::string failure(const Json& json) {
  try {
    allow_only(JsonRef(json, "a.b"), {"batch", "window"}, kHints);
  } catch (const Error& error) {
    return error.why();
  }
  return "";
}

TEST(KeyHints, AKeyOfOtherProgramsIsAnsweredWithItsAdvice) {
  EXPECT_EQ(failure({{"batch_size", 3}}),
            "a.b: unknown key 'batch_size': write \"batch\": {\"size\": 32}");
  EXPECT_EQ(failure({{"Batch-Size", 3}}),
            "a.b: unknown key 'Batch-Size': write \"batch\": {\"size\": 32}");
  EXPECT_EQ(failure({{"windw", 3}}), "a.b: unknown key 'windw', did you mean 'window'?");
  EXPECT_EQ(failure({{"batch", 3}}), "");
}

}  // namespace key_hints_test
}  // namespace batchfs
