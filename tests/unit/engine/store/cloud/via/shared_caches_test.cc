#include "engine/store/cloud/via/shared_caches.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {

namespace shared_caches_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

std::vector<std::string> urls(int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back("http://cache-" + std::to_string(i) + ":8090");
  return all;
}

std::string object(int i) {
  return "https://bucket.s3.eu-west-1.amazonaws.com/x/c/" + std::to_string(i);
}

HttpResponse damaged() {
  HttpResponse response{.status = 200, .headers = {{"content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="}}};
  response.body = Buffer(3);
  response.body_received = 3;
  return response;
}

std::uint64_t counter(const SharedCaches& caches, const std::string& name) {
  for (const Store::Counter& each : caches.counters())
    if (each.name == name) return each.value;
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

TEST(CacheUrls, AreServersAlone) {
  EXPECT_THAT(parse_cache_urls({"http://one:8090/", "https://Two.example", "unix:/run/Three"}),
              ElementsAre("http://one:8090", "https://two.example", "unix:/run/Three"));
  for (const char* wrong :
       {"one:8090", "ftp://one", "http://one/path", "http://one?x=1", "http://user:hidden@one", "",
        "http://", "unix:", "unix:run/x", "unix:/", "unix://run/x"}) {
    const Error error = error_of([&] { parse_cache_urls({wrong}); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << wrong;
    EXPECT_THAT(std::string(error.what()), HasSubstr("--via")) << wrong;
    EXPECT_EQ(std::string(error.what()).find("hidden"), std::string::npos);
  }
  EXPECT_THAT(error_of([] {
                parse_cache_urls({"http://one", "http://one/"});
              }).what(),
              HasSubstr("twice"));
}

TEST(CacheUrls, NoneStandsForNoCache) {
  EXPECT_TRUE(parse_cache_urls({"none"}).empty());
  EXPECT_EQ(error_of([] {
              parse_cache_urls({"none", "http://one"});
            }).code(),
            ErrorCode::invalid_argument);
}

TEST(CacheUrls, ClearTextIsReadByOthersButOnThisMachine) {
  for (const char* url :
       {"https://one", "http://127.0.0.1:80", "http://localhost:1", "http://[::1]", "unix:/run/x"})
    EXPECT_TRUE(is_confidential(url)) << url;
  for (const char* url : {"http://one", "http://10.0.0.1:80", "http://127.example"})
    EXPECT_FALSE(is_confidential(url)) << url;
  EXPECT_FALSE(SharedCaches({.urls = {"http://127.0.0.1:1", "http://one"}}).are_confidential());
}

TEST(SharedCaches, UnixSocketsAreGateways) {
  SharedCaches caches({.urls = {"unix:/run/x", "http://one"}});
  EXPECT_EQ(caches.url(0), "unix:/run/x");
  EXPECT_EQ(caches.gateway(0)->socket, "/run/x");
  EXPECT_EQ(caches.gateway(1)->socket, "");
}

TEST(SharedCaches, EveryMachineChoosesAlikeAndEvenly) {
  SharedCaches caches({.urls = urls(8)});
  std::vector<std::string> turned = urls(8);
  std::reverse(turned.begin(), turned.end());
  SharedCaches others({.urls = turned});
  std::map<std::string, int> times;
  for (int i = 0; i < 8000; ++i) {
    const auto mine = caches.choose(object(i), 0, {}, 1);
    const auto theirs = others.choose(object(i) + "?signature=" + std::to_string(i), 0, {}, 1);
    ASSERT_TRUE(mine && theirs);
    ASSERT_EQ(caches.url(*mine), others.url(*theirs));
    ++times[caches.url(*mine)];
  }
  EXPECT_EQ(times.size(), 8u);
  for (const auto& [url, count] : times) EXPECT_NEAR(count, 1000, 150) << url;
}

TEST(SharedCaches, OneThatGoesMovesItsOwnObjectsAlone) {
  SharedCaches before({.urls = urls(8)}), after({.urls = urls(7)});
  int moved = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string was = before.url(*before.choose(object(i), 0, {}, 1));
    const std::string is = after.url(*after.choose(object(i), 0, {}, 1));
    if (was == "http://cache-7:8090")
      ++moved;
    else
      EXPECT_EQ(was, is);
  }
  EXPECT_NEAR(moved, 500, 100);
}

TEST(SharedCaches, PartsOfALargeObjectAreSpread) {
  SharedCaches caches({.urls = urls(8)});
  std::set<std::size_t> chosen;
  const std::uint64_t part = 64 << 20;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const auto first = caches.choose("http://s/shard", i * part, {}, 1);
    EXPECT_EQ(first, caches.choose("http://s/shard", i * part + part - 1, {}, 1));
    chosen.insert(*first);
  }
  EXPECT_EQ(chosen.size(), 8u);
}

TEST(SharedCaches, RefusedOnesAreNotChosen) {
  SharedCaches caches({.urls = urls(3)});
  const std::size_t first = *caches.choose("http://s/a", 0, {}, 1);
  const std::size_t second = *caches.choose("http://s/a", 0, {first}, 1);
  EXPECT_NE(first, second);
  EXPECT_FALSE(caches.choose("http://s/a", 0, {0, 1, 2}, 1));
}

TEST(SharedCaches, ASilentOneIsLeftAloneLongerAndLonger) {
  std::vector<std::string> log;
  SharedCaches caches(
      {.urls = urls(1), .warn = [&](const std::string& line) { log.push_back(line); }});
  std::int64_t now = kSecond;
  EXPECT_FALSE(caches.is_left_alone(0, now));
  for (const int seconds : {10, 20, 40, 80, 160, 300, 300}) {
    ASSERT_TRUE(caches.choose("http://s/a", 0, {}, now));
    caches.failed(0, now, true, "connecting failed");
    caches.failed(0, now, true, "connecting failed");  // of the same time: not twice as long
    EXPECT_THAT(log.back(), HasSubstr(std::to_string(seconds) + " s: connecting failed"));
    EXPECT_TRUE(caches.is_left_alone(0, now));
    EXPECT_FALSE(caches.choose("http://s/a", 0, {}, now + (seconds - 1) * kSecond));
    now += (seconds + 1) * kSecond;
  }
  EXPECT_EQ(log.size(), 7u);
  // One request tries it, then all come back.
  EXPECT_TRUE(caches.choose("http://s/a", 0, {}, now));
  EXPECT_FALSE(caches.choose("http://s/b", 0, {}, now));
  EXPECT_FALSE(caches.is_left_alone(0, now));
  caches.answered(0, {});
  EXPECT_TRUE(caches.choose("http://s/b", 0, {}, now));
  caches.failed(0, now, true, "");
  EXPECT_TRUE(caches.choose("http://s/b", 0, {}, now + 11 * kSecond));
}

TEST(SharedCaches, AWrongAnswerCountsTheThirdTime) {
  SharedCaches caches({.urls = urls(1)});
  caches.failed(0, 1, false, "status 500");
  caches.failed(0, 1, false, "status 500");
  EXPECT_FALSE(caches.is_left_alone(0, 1));
  caches.answered(0, {});
  caches.failed(0, 1, false, "status 500");
  caches.failed(0, 1, false, "status 500");
  EXPECT_FALSE(caches.is_left_alone(0, 1));
  caches.failed(0, 1, false, "status 500");
  EXPECT_TRUE(caches.is_left_alone(0, 1));
  EXPECT_EQ(counter(caches, "via_failures"), 5u);
}

TEST(SharedCaches, CountsWhatHeadersSay) {
  EXPECT_EQ(says_hit({{"x-cache", "HIT from cache-1"}}), true);
  EXPECT_EQ(says_hit({{"x-cache-status", "hit"}}), true);
  EXPECT_EQ(says_hit({{"x-cache", "MISS"}}), false);
  EXPECT_EQ(says_hit({{"age", "7"}}), std::nullopt);
  SharedCaches caches({.urls = urls(2)});
  const std::size_t first = *caches.choose("http://s/a", 0, {}, 1);
  HttpResponse hit, miss;
  hit.headers = {{"x-cache", "HIT"}};
  miss.headers = {{"x-cache", "MISS"}};
  const HttpResponse silent;
  for (const HttpResponse* each :
       std::initializer_list<const HttpResponse*>{&hit, &hit, &miss, &silent})
    caches.answered(first, *each);
  const std::string name = "via_" + std::to_string(first + 1);
  EXPECT_EQ(counter(caches, "via_hits"), 2u);
  EXPECT_EQ(counter(caches, "via_misses"), 1u);
  EXPECT_EQ(counter(caches, name + "_hits"), 2u);
  EXPECT_EQ(counter(caches, name + "_requests"), 1u);
}

TEST(SharedCaches, CompareChecksumsOnlyWhenAskedTo) {
  SharedCaches(SharedCaches::Options{.urls = urls(1)}).check_sum(damaged());
  SharedCaches caches({.urls = urls(1), .verify = true});
  EXPECT_EQ(error_of([&] { caches.check_sum(damaged()); }).code(), ErrorCode::corrupt);
  HttpResponse silent = damaged();
  silent.headers.clear();
  caches.check_sum(silent);
  EXPECT_EQ(counter(caches, "via_damaged"), 1u);
  EXPECT_EQ(counter(caches, "via_verified"), 0u);
}

}  // namespace shared_caches_test

}  // namespace batchfs
