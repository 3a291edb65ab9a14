#include "engine/store/cloud/answer_versions.h"

#include <gtest/gtest.h>

#include "engine/store/http/response_checks.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {

namespace answer_versions_test {

constexpr std::int64_t kSecond = 1'000'000'000;
using Finding = VersionDoubt::Finding;

std::string date(int second) {
  char text[40];
  std::snprintf(text, sizeof text, "Mon, 01 Jan 2024 00:00:%02d GMT", second);
  return text;
}

std::string modified(int second) {
  return version_of(FakeStoreEnvironment::answer(200, "", {{"last-modified", date(second)}}));
}

TEST(AnswerVersions, RemembersTheFirstVersion) {
  AnswerVersions versions({});
  EXPECT_FALSE(versions.contains("a"));
  EXPECT_TRUE(versions.may_have("a", "\"1\"", 10));
  EXPECT_FALSE(versions.has("a", "\"1\"", 10));
  EXPECT_TRUE(versions.accept("a", "\"1\"", 10));
  EXPECT_TRUE(versions.accept("a", "W/\"1\"", std::nullopt));
  EXPECT_TRUE(versions.has("a", "\"1\"", 10));
  EXPECT_FALSE(versions.accept("a", "\"2\"", 10));
  EXPECT_FALSE(versions.may_have("a", "\"2\"", 10));
  EXPECT_FALSE(versions.accept("a", modified(1), 10));
}

TEST(AnswerVersions, DatesAreComparedWithSizesUntilTheyAreIgnored) {
  AnswerVersions versions({});
  EXPECT_TRUE(versions.accept("a", modified(1), 10));
  EXPECT_TRUE(versions.accept("tagged", "\"1\"", 10));
  EXPECT_TRUE(versions.accept("plain", "", 10));
  EXPECT_FALSE(versions.accept("a", modified(1), 11));
  EXPECT_FALSE(versions.accept("a", modified(2), 10));
  versions.ignore_dates();
  EXPECT_TRUE(versions.accept("a", modified(2), 10)) << "read before the dates were ignored";
  EXPECT_TRUE(versions.has("a", modified(3), 10));
  EXPECT_TRUE(versions.may_have("a", modified(3), 10));
  EXPECT_FALSE(versions.accept("a", modified(2), 11));
  EXPECT_FALSE(versions.may_have("a", modified(1), 11));
  EXPECT_TRUE(versions.accept("b", modified(1), 10));
  EXPECT_TRUE(versions.accept("b", modified(2), 10));
  EXPECT_FALSE(versions.accept("b", modified(1), 11));
  EXPECT_FALSE(versions.accept("tagged", "\"2\"", 10)) << "an ETag is no date";
  EXPECT_FALSE(versions.accept("plain", "", 11));
}

struct VersionDoubtTest : testing::Test {
  VersionDoubt doubt;
  std::int64_t now = 5 * kSecond;

  Finding add(const HttpHeaders& headers, const std::string& body = "bytes", int patience = 12) {
    const HttpResponse answer = FakeStoreEnvironment::answer(206, body, headers);
    return doubt.add(answer, version_of(answer), patience, now);
  }
};

TEST_F(VersionDoubtTest, OneNewVersionIsAChange) {
  for (int i = 0; i < 11; ++i) EXPECT_EQ(add({{"etag", "\"2\""}}), Finding::unclear);
  EXPECT_EQ(add({{"etag", "\"2\""}}), Finding::changed);
}

TEST_F(VersionDoubtTest, EtagsThatAllDifferAreChanges) {
  for (int i = 0; i < 11; ++i)
    EXPECT_EQ(add({{"etag", "\"" + std::to_string(i) + "\""}}), Finding::unclear);
  EXPECT_EQ(add({{"etag", "\"other\""}}), Finding::changed);
}

TEST_F(VersionDoubtTest, MoreDatesThanSecondsAreMadeUp) {
  for (int i = 1; i < 4; ++i) EXPECT_EQ(add({{"last-modified", date(i)}}), Finding::unclear);
  EXPECT_EQ(doubt.pause(), 0);
  EXPECT_EQ(add({{"last-modified", date(4)}}), Finding::dates_vary);
}

TEST_F(VersionDoubtTest, AFileThatIsWrittenEachSecondChanges) {
  for (int i = 1; i < 12; ++i, now += kSecond)
    if (add({{"last-modified", date(i)}}) != Finding::unclear) break;
  EXPECT_EQ(add({{"last-modified", date(30)}}), Finding::changed);
  EXPECT_LE(now, 17 * kSecond) << "a doubt ends in time";
}

TEST_F(VersionDoubtTest, DatesOfReplicasAreAChangeIfTheFirstStaysAway) {
  for (int i = 0; i < 11; ++i) EXPECT_EQ(add({{"last-modified", date(i % 2)}}), Finding::unclear);
  EXPECT_EQ(add({{"last-modified", date(1)}}), Finding::changed);
}

TEST_F(VersionDoubtTest, OtherBytesAreAChange) {
  for (int i = 0; i < 11; ++i)
    EXPECT_EQ(add({{"last-modified", date(i)}}, std::string(1, static_cast<char>('a' + i))),
              Finding::unclear);
  EXPECT_EQ(add({{"last-modified", date(20)}}), Finding::changed);
}

TEST_F(VersionDoubtTest, TheTimeOfEachAnswerIsMadeUp) {
  for (int i = 1; i < 4; ++i, now += 2 * kSecond) {
    EXPECT_EQ(add({{"last-modified", date(2 * i)}, {"date", date(2 * i + 1)}}), Finding::unclear);
    EXPECT_GT(doubt.pause(), kSecond) << "the next one comes in another second";
  }
  EXPECT_EQ(add({{"last-modified", date(20)}, {"date", date(20)}}), Finding::dates_vary);
}

TEST_F(VersionDoubtTest, AFileThatWasJustWrittenIsAChange) {
  EXPECT_EQ(add({{"last-modified", date(10)}, {"date", date(10)}}), Finding::unclear);
  EXPECT_GT(doubt.pause(), kSecond);
  EXPECT_EQ(add({{"last-modified", date(10)}, {"date", date(11)}}), Finding::unclear);
  EXPECT_EQ(doubt.pause(), 0);
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(add({{"last-modified", date(10)}, {"date", date(11)}}), Finding::unclear);
  EXPECT_EQ(add({{"last-modified", date(10)}, {"date", date(11)}}), Finding::changed);
}

TEST(AnswerVersions, AServerWithReplicasIsAskedMoreOften) {
  AnswerVersions versions({});
  const int before = versions.patience();
  versions.note_return();
  EXPECT_GT(versions.patience(), 2 * before);
}

}  // namespace answer_versions_test

}  // namespace batchfs
