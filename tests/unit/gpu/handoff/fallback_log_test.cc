#include "gpu/handoff/fallback_log.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs::handoff {
namespace fallback_log_test {

using testing::HasSubstr;

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(FallbackLog, CountsAllAndLogsTheFirstOfEachKind) {
  const FakeData fake(4, 2, 3);
  const auto view = fake.view(R"({"name": "train", "variables": ["v"], "window": {"time": 1}})");
  Log log;
  FallbackLog fallbacks(log);
  const std::size_t before = lines(log.text());
  for (int i = 0; i < 3; ++i) fallbacks.count(*view, FallbackLog::reason_of(Fallback::slots_held));
  fallbacks.count(*view, {Fallback::not_decoded, "chunk 7 is odd"});
  EXPECT_EQ(fallbacks.counts()[static_cast<std::size_t>(Fallback::slots_held)], 3u);
  EXPECT_EQ(fallbacks.counts()[static_cast<std::size_t>(Fallback::not_decoded)], 1u);
  EXPECT_EQ(fallbacks.counts()[static_cast<std::size_t>(Fallback::failed)], 0u);
  EXPECT_EQ(lines(log.text()), before + 2);
  EXPECT_THAT(log.text(), HasSubstr("counted as 'slots_held'"));
  EXPECT_THAT(log.text(), HasSubstr("chunk 7 is odd"));
}

TEST(FallbackLog, ErrorsOfAStreamAreReasons) {
  EXPECT_EQ(FallbackLog::reason_of(Error(ErrorCode::no_memory, "x")).why, Fallback::no_memory);
  EXPECT_EQ(FallbackLog::reason_of(Error(ErrorCode::not_supported, "x")).why,
            Fallback::not_decoded);
  EXPECT_EQ(FallbackLog::reason_of(Error(ErrorCode::io, "x")).why, Fallback::failed);
  EXPECT_FALSE(FallbackLog::reason_of(Error(ErrorCode::io, "x")).is_expected);
  EXPECT_TRUE(FallbackLog::reason_of(Fallback::behind).is_expected);
  EXPECT_FALSE(FallbackLog::reason_of(Fallback::no_memory).is_expected);
}

}  // namespace fallback_log_test
}  // namespace batchfs::handoff
