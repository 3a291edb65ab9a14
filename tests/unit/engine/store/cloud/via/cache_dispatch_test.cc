#include "engine/store/cloud/via/cache_dispatch.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace cache_dispatch_test {

struct CacheDispatchTest : testing::Test {
  std::shared_ptr<SharedCaches> caches = std::make_shared<SharedCaches>(
      SharedCaches::Options{.urls = {"http://one:80", "http://two:80", "http://three:80"}});
  CacheDispatch dispatch{caches};
  CacheRoute route;
  HttpRequest request{.url = "https://bucket.example/key"};

  CacheDispatch::Target choose(std::uint64_t limit = 64) {
    return dispatch.choose(route, request, 0, limit, 1);
  }
  void refuse(std::size_t cache, int status, ErrorCode code = ErrorCode::io) {
    dispatch.refuse(route, cache, status, Error(code, "why"), 1);
  }
};

TEST_F(CacheDispatchTest, WithoutCachesTheServiceIsAsked) {
  CacheDispatch none(nullptr);
  const auto target = none.choose(route, request, 0, 64, 1);
  EXPECT_FALSE(target.cache || target.is_uncached || target.must_wait);
  EXPECT_EQ(request.gateway, nullptr);
}

TEST_F(CacheDispatchTest, ACacheThenAnotherThenTheService) {
  const auto first = choose();
  ASSERT_TRUE(first.cache);
  EXPECT_EQ(request.gateway, caches->gateway(*first.cache));
  refuse(*first.cache, 502);
  const auto second = choose();
  ASSERT_TRUE(second.cache);
  EXPECT_NE(first.cache, second.cache);
  refuse(*second.cache, 0, ErrorCode::timed_out);
  request.gateway = nullptr;
  const auto third = choose();  // no read tries them all
  EXPECT_TRUE(third.is_uncached);
  EXPECT_EQ(request.gateway, nullptr);
  EXPECT_TRUE(caches->is_left_alone(*second.cache, 1));
  EXPECT_FALSE(caches->is_left_alone(*first.cache, 1));
}

TEST_F(CacheDispatchTest, WhatACacheSaysOfAnObjectOnlyTheServiceKnows) {
  for (const int status : {403, 404, 302, 200}) {
    route = {};
    const auto target = choose();
    refuse(*target.cache, status);
    EXPECT_TRUE(route.past_caches) << status;
    const auto next = choose();
    EXPECT_FALSE(next.cache || next.is_uncached || next.must_wait);
  }
}

TEST_F(CacheDispatchTest, SecretsGoOnlyWhereNobodyReadsThem) {
  request.secret = true;
  EXPECT_FALSE(choose().cache);
  CacheDispatch safe(std::make_shared<SharedCaches>(
      SharedCaches::Options{.urls = {"https://one", "http://127.0.0.1:1"}}));
  EXPECT_TRUE(safe.choose(route, request, 0, 64, 1).cache);
}

TEST_F(CacheDispatchTest, FewRequestsForWantOfACacheAtATime) {
  for (std::size_t i = 0; i < 3; ++i) caches->failed(i, 1, true, "gone");
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(choose(64).is_uncached);
  EXPECT_TRUE(choose(64).must_wait);
  EXPECT_EQ(dispatch.room(64), 0u);
  EXPECT_EQ(dispatch.room(8), 0u);
  EXPECT_EQ(dispatch.room(80), 2u);
  dispatch.left();
  EXPECT_TRUE(choose(64).is_uncached);
  for (int i = 0; i < 8; ++i) dispatch.left();
  EXPECT_EQ(dispatch.room(0), 4u);
}

TEST_F(CacheDispatchTest, OneThatHangsIsLeftAloneWhenOvertaken) {
  const std::int64_t second = 1'000'000'000;
  const std::int64_t now = 100 * second;
  EXPECT_FALSE(dispatch.is_late(0, second, now));  // nothing is known of its answers
  EXPECT_TRUE(dispatch.is_late(0, 2 * second, now));
  for (int i = 0; i < 32; ++i) dispatch.answered(0, {}, second / 1000, now - 5 * second);
  EXPECT_FALSE(dispatch.is_late(0, second / 2, now));
  EXPECT_TRUE(dispatch.is_late(0, second, now));
  dispatch.heard(0, now - second / 10);  // it answers others
  EXPECT_FALSE(dispatch.is_late(0, 20 * second, now));
  EXPECT_TRUE(dispatch.is_late(1, second, now));
  EXPECT_FALSE(dispatch.is_stuck(second));
  EXPECT_TRUE(dispatch.is_stuck(3 * second));
  for (int i = 0; i < 256; ++i) dispatch.answered(0, {}, second, now);
  EXPECT_FALSE(dispatch.is_late(1, 2 * second, now));
  EXPECT_TRUE(dispatch.is_late(1, 3 * second, now));
  EXPECT_FALSE(dispatch.is_hopeless(0, second, 1));
  dispatch.overtaken(0, 1);
  EXPECT_TRUE(dispatch.is_hopeless(0, second, 1));
  EXPECT_FALSE(dispatch.is_hopeless(0, second / 100, 1));
}

TEST_F(CacheDispatchTest, CancelledRequestsSayNothingOfACache) {
  refuse(0, 0, ErrorCode::interrupted);
  EXPECT_FALSE(caches->is_left_alone(0, 1));
}

}  // namespace cache_dispatch_test

}  // namespace batchfs
