#include "engine/store/cloud/object_requests.h"

#include <future>

#include <gmock/gmock.h>

#include "tests/unit/engine/store/cloud/object_server.h"

namespace batchfs {

namespace object_requests_test {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

struct ObjectRequestsTest : ObjectStoreTest {
  /// The first `times` requests for each target get `answer`.
  void fail(const Answer& answer, int times = 1000) {
    there.fault = [answer, times](const Request&, int nth) -> std::optional<Answer> {
      return nth < times ? std::optional(answer) : std::nullopt;
    };
  }
};

TEST(RequestOptions, ComeFromTheConfiguration) {
  StoreConfig config;
  EXPECT_LE(request_options(config).budget, 60 - 5);
  config.timeout = 120;
  config.retries = 7;
  EXPECT_EQ(request_options(config).timeout, 120);
  EXPECT_EQ(request_options(config).retries, 7);
  EXPECT_GT(request_options(config).budget, 120);
}

TEST_F(ObjectRequestsTest, PassingTroubleIsTriedAgain) {
  int number = 0;
  for (const Answer& trouble :
       {Answer{.status = 408}, Answer{.status = 429}, Answer{.status = 500}, Answer{.status = 502},
        Answer{.status = 503, .headers = {{"Retry-After", "0"}}}, Answer{.status = 504},
        Answer{.body = "0123456789", .end_after = 4},
        Answer{.body = "0123456789", .end_after = 4, .reset = true}, Answer{.hang_up = true},
        Answer{.body = "01234", .claimed_length = 10, .end_after = 5}}) {
    const std::string key = "k" + std::to_string(number++);
    there.objects["/" + key] = "0123456789";
    const auto store = open();
    fail(trouble, 2);
    EXPECT_EQ(text(store->read(key)), "0123456789") << "status " << trouble.status;
    EXPECT_GE(counter(*store, "retries"), 1u);
    EXPECT_EQ(counter(*store, "failures"), 0u);
  }
}

TEST_F(ObjectRequestsTest, TroubleThatStaysIsAnError) {
  const auto store = open();
  const auto tries = [&](const Answer& answer, ErrorCode expected, std::string* message = nullptr) {
    fail(answer);
    const int before = there.server.requests();
    EXPECT_EQ(code_of([&] { store->read("a"); }, message), expected);
    return there.server.requests() - before;
  };
  std::string message;
  EXPECT_EQ(tries({.status = 500}, ErrorCode::io, &message), 4);
  EXPECT_THAT(message, HasSubstr("tried 4 times"));
  EXPECT_THAT(message, HasSubstr("500"));
  EXPECT_THAT(message, HasSubstr(there.server.url() + "/a"));
  EXPECT_EQ(tries({.body = "0123456789", .end_after = 4}, ErrorCode::io), 4);
  // Permanent errors are not retried.
  EXPECT_EQ(tries({.status = 403}, ErrorCode::access_denied), 1);
  EXPECT_EQ(tries({.status = 401}, ErrorCode::access_denied), 1);
  EXPECT_EQ(tries({.status = 400}, ErrorCode::io), 1);
  EXPECT_EQ(tries({.status = 412}, ErrorCode::stale), 1);
  EXPECT_EQ(tries({.status = 302}, ErrorCode::io), 1);
  EXPECT_EQ(counter(*store, "failures"), 7u);
  EXPECT_EQ(counter(*store, "retries"), 6u);
}

TEST_F(ObjectRequestsTest, WithoutRetriesOneTryIsAll) {
  RequestOptions options = quick_options();
  options.retries = 0;
  const auto store = open(options);
  fail({.status = 500}, 1);
  std::string message;
  EXPECT_EQ(code_of([&] { store->read("a"); }, &message), ErrorCode::io);
  EXPECT_THAT(message, HasSubstr("tried once"));
}

TEST_F(ObjectRequestsTest, AnUnreachableServerIsAnError) {
  int port;
  {
    port = LoopbackServer([](const Request&) { return Answer{}; }).port();
  }
  ObjectStore store(
      std::make_shared<HttpService>("http://127.0.0.1:" + std::to_string(port), client), client,
      quick_options());
  EXPECT_EQ(code_of([&] { store.read("a"); }), ErrorCode::io);
}

TEST_F(ObjectRequestsTest, AWaitBeyondTheBudgetIsAnErrorAtOnce) {
  fail({.status = 503, .headers = {{"Retry-After", "3600"}}});
  std::string message;
  EXPECT_EQ(code_of([&] { open()->read("a"); }, &message), ErrorCode::io);
  EXPECT_THAT(message, HasSubstr("3600 s"));
  EXPECT_EQ(there.server.requests(), 1);
}

TEST_F(ObjectRequestsTest, StallsAndDripsTimeOutOrAreTriedAgain) {
  RequestOptions options = quick_options();
  options.timeout = 0.3;
  options.retries = 1;
  options.hedge = false;
  const auto store = open(options);
  int number = 0;
  for (const Answer& stall :
       {Answer{.delay = milliseconds(60'000)}, Answer{.body = "0123456789", .stall_after = 4},
        Answer{.body = std::string(100'000, 'x'), .drip = milliseconds(20)}}) {
    const std::string key = "k" + std::to_string(number++);
    there.objects["/" + key] = "0123456789";
    there.objects["/" + key + "x"] = "0123456789";
    fail(stall);
    EXPECT_EQ(code_of([&] { store->read(key); }), ErrorCode::timed_out);
    fail(stall, 1);
    EXPECT_EQ(text(store->read(key + "x")), "0123456789");
  }
}

TEST_F(ObjectRequestsTest, TheBudgetBoundsAllTries) {
  RequestOptions options = quick_options();
  options.retries = 1'000'000;
  options.budget = 0.3;
  const auto store = open(options);
  fail({.status = 500});
  EXPECT_EQ(code_of([&] { store->read("a"); }), ErrorCode::io);
  fail({.delay = milliseconds(60'000)});
  options.timeout = 0.2;
  EXPECT_EQ(code_of([&] { open(options)->read("b"); }), ErrorCode::timed_out);
}

TEST_F(ObjectRequestsTest, AStallIsHedged) {
  for (int i = 0; i < 64; ++i) there.objects["/k" + std::to_string(i)] = "quick";
  there.objects["/stalls"] = "0123456789";
  there.objects["/stops"] = "0123456789";
  there.fault = [](const Request& request, int nth) -> std::optional<Answer> {
    if (nth > 0) return std::nullopt;
    if (request.target == "/stalls") return Answer{.delay = milliseconds(600'000)};
    if (request.target == "/stops") return Answer{.body = "0123456789", .stall_after = 4};
    return std::nullopt;
  };
  const auto store = open();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(text(store->read("k" + std::to_string(i))), "quick");
  EXPECT_EQ(text(store->read("stalls")), "0123456789");
  EXPECT_EQ(text(store->read("stops")), "0123456789");
  EXPECT_GE(counter(*store, "hedges"), 2u);
  EXPECT_EQ(counter(*store, "hedges_won"), 2u);
  EXPECT_EQ(counter(*store, "retries"), 0u);
}

TEST_F(ObjectRequestsTest, HedgesAreFew) {
  // A server that is slow for everyone: hedges must not double its load.
  there.fault = [](const Request& request, int) {
    return Answer{.body = "x", .delay = milliseconds(request.target == "/a" ? 1 : 150)};
  };
  const auto store = open();
  for (int i = 0; i < 64; ++i) store->read("a");
  std::atomic<int> done{0};
  for (int i = 0; i < 200; ++i)
    store->read_async("b" + std::to_string(i), {}, [&](ReadOutcome) { ++done; });
  while (done < 200) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_LE(counter(*store, "hedges"), 4 + 264 * 0.03 + 1);
}

/// Learns the objects' location from the first answer, and may refuse to authorize.
class MovingService final : public HttpService {
 public:
  MovingService(const std::string& url, const std::shared_ptr<HttpClient>& client)
      : HttpService(url, client), client_(*client) {}

  HttpRequest get(const std::string& key) override { return HttpService::get(place_ + key); }
  void authorize(HttpRequest& request) override {
    ++authorized;
    if (client_.is_own_thread()) on_client_thread = true;
    if (refuses) throw Error(ErrorCode::access_denied, "no token");
    if (fails-- > 0) throw Error(ErrorCode::io, "no token now");
    request.headers.emplace_back("Authorization", "token");
  }
  Verdict classify(const HttpResponse& response) override {
    if (response.status != 400) return classify_status(response);
    const std::lock_guard lock(mutex_);
    if (!is_lost) place_ = "there/";
    return {Verdict::moved, std::nullopt};
  }

  std::atomic<int> authorized{0}, fails{0};
  std::atomic<bool> on_client_thread{false}, refuses{false}, is_lost{false};

 private:
  const HttpClient& client_;
  std::mutex mutex_;
  std::string place_;
};

TEST_F(ObjectRequestsTest, AServiceMayLearnAndTryAtOnce) {
  there.objects["/there/a"] = "found";
  there.fault = [](const Request& request, int) -> std::optional<Answer> {
    if (!request.headers.contains("authorization")) return Answer{.status = 401};
    return request.target.starts_with("/there/") ? std::nullopt
                                                 : std::optional(Answer{.status = 400});
  };
  const auto service = std::make_shared<MovingService>(there.server.url(), client);
  RequestOptions options = quick_options();
  options.retries = 0;
  ObjectStore store(service, client, options);
  EXPECT_EQ(text(store.read("a")), "found");
  EXPECT_EQ(there.server.requests(), 2);
  EXPECT_EQ(service->authorized, 2);
  EXPECT_EQ(counter(store, "retries"), 0u);

  there.fault = [](const Request&, int) { return Answer{.status = 400}; };
  service->is_lost = true;
  EXPECT_EQ(code_of([&] { store.read("a"); }), ErrorCode::io);
  EXPECT_FALSE(service->on_client_thread);
}

TEST_F(ObjectRequestsTest, FailingToAuthorizeIsAnErrorOrTriedAgain) {
  there.objects["/a"] = "found";
  const auto service = std::make_shared<MovingService>(there.server.url(), client);
  ObjectStore store(service, client, quick_options());
  service->fails = 2;
  EXPECT_EQ(text(store.read("a")), "found");
  service->refuses = true;
  EXPECT_EQ(code_of([&] { store.read("a"); }), ErrorCode::access_denied);
  EXPECT_EQ(there.server.requests(), 1);
}

/// Fetches a token first, from a server that does not answer.
class TokenService : public HttpService {
 public:
  TokenService(const std::string& url, const std::shared_ptr<HttpClient>& client)
      : HttpService(url, client), token_url_(url + "/token"), client_(*client) {}
  void authorize(HttpRequest&) override { client_.send_and_wait({.url = token_url_}); }

 private:
  const std::string token_url_;
  HttpClient& client_;
};

TEST_F(ObjectRequestsTest, StopEndsTheWaitForAToken) {
  there.fault = [](const Request&, int) { return Answer{.delay = milliseconds(60'000)}; };
  const auto service = std::make_shared<TokenService>(there.server.url(), client);
  ObjectStore store(service, client, quick_options());
  std::thread reader([&] { EXPECT_EQ(code_of([&] { store.read("a"); }), ErrorCode::interrupted); });
  while (there.server.requests() == 0) std::this_thread::sleep_for(milliseconds(1));
  store.stop();
  reader.join();
}

TEST_F(ObjectRequestsTest, NeverAuthorizesOnTheClientsThread) {
  for (int i = 0; i < 10; ++i) there.objects["/" + std::to_string(i)] = "x";
  there.fault = [](const Request&, int nth) -> std::optional<Answer> {
    return nth == 0 ? std::optional(Answer{.status = 503}) : std::nullopt;
  };
  const auto service = std::make_shared<MovingService>(there.server.url(), client);
  ObjectStore store(service, client, quick_options());
  std::promise<void> end;
  std::function<void(int)> next = [&](int i) {
    store.read_async(std::to_string(i), {}, [&, i](ReadOutcome outcome) {
      EXPECT_EQ(text(std::get<std::optional<Buffer>>(outcome)), "x");
      if (i == 9)
        end.set_value();
      else
        next(i + 1);
    });
  };
  next(0);
  end.get_future().get();
  EXPECT_EQ(service->authorized, 20);
  EXPECT_FALSE(service->on_client_thread);
}

// ---- shared caches ----

struct SharedCachesTest : ObjectRequestsTest {
  /// Opens a store that reads through these caches; the objects have a version.
  std::unique_ptr<ObjectStore> open_via(std::vector<std::string> urls, bool trust = false,
                                        bool verify = false) {
    RequestOptions options = quick_options();
    caches = std::make_shared<SharedCaches>(
        SharedCaches::Options{.urls = std::move(urls), .trust = trust, .verify = verify});
    options.caches = caches;
    return open(options);
  }
  void serve(const std::string& key, const std::string& value, const std::string& version) {
    there.fault = [=](const Request& request, int) -> std::optional<Answer> {
      if (request.target != "/" + key) return std::nullopt;
      const auto known = request.headers.find("if-none-match");
      if (known != request.headers.end() && known->second == version)
        return Answer{.status = 304, .headers = {{"ETag", version}}};
      return LoopbackServer::object(request, value, version);
    };
  }
  std::shared_ptr<SharedCaches> caches;
};

TEST_F(SharedCachesTest, ACacheGivesTheBytesAndTheStoreTheirVersion) {
  serve("a", "0123456789", "\"1\"");
  LoopbackServer cache([](const Request& request) {
    return LoopbackServer::object(request, "0123456789", "\"1\"");
  });
  const auto store = open_via({cache.url()});
  EXPECT_EQ(text(store->read("a")), "0123456789");
  EXPECT_EQ(text(store->read("a", {2, 3})), "234");
  EXPECT_EQ(text(store->read("a", {.length = 2, .from_end = true})), "89");
  EXPECT_EQ(cache.requests(), 3);
  EXPECT_EQ(there.server.requests(), 1);  // once for each object
  EXPECT_EQ(counter(*store, "via_confirmed"), 1u);
  EXPECT_EQ(counter(*store, "via_requests"), 3u);
  EXPECT_EQ(counter(*open_via({cache.url()}, true), "via_confirmed"), 0u);
}

TEST_F(SharedCachesTest, TrustedCachesAreNotCompared) {
  serve("a", "new", "\"2\"");
  LoopbackServer cache(
      [](const Request& request) { return LoopbackServer::object(request, "old", "\"1\""); });
  EXPECT_EQ(text(open_via({cache.url()}, true)->read("a")), "old");
  EXPECT_EQ(there.server.requests(), 0);
  const auto store = open_via({cache.url()});
  EXPECT_EQ(text(store->read("a")), "new");
  EXPECT_EQ(counter(*store, "via_outdated"), 1u);
  EXPECT_EQ(text(store->read("a")), "new");
}

TEST_F(SharedCachesTest, WhatDoesNotFitItsChecksumComesFromTheStore) {
  serve("a", "0123456789", "\"1\"");
  LoopbackServer cache([](const Request& request) {
    Answer answer = LoopbackServer::object(request, "0123456780", "\"1\"");
    answer.headers.emplace_back("Content-MD5", "eB5eJF1ptWaXm4bijSPyxw==");
    return answer;
  });
  EXPECT_EQ(text(open_via({cache.url()})->read("a")), "0123456780");  // no request was needed
  const auto store = open_via({cache.url()}, false, true);
  EXPECT_EQ(text(store->read("a")), "0123456789");
  EXPECT_EQ(counter(*store, "via_damaged"), 1u);
  EXPECT_EQ(counter(*store, "via_failures"), 1u);
}

TEST_F(SharedCachesTest, AStoreWithoutVersionsIsReadItself) {
  there.objects["/a"] = "0123456789";
  LoopbackServer cache(
      [](const Request& request) { return LoopbackServer::object(request, "another", ""); });
  const auto store = open_via({cache.url()});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(text(store->read("a")), "0123456789");
  EXPECT_EQ(counter(*store, "via_failures"), 0u);
  EXPECT_EQ(counter(*store, "via_fallbacks"), 5u);
}

TEST_F(SharedCachesTest, AMissingObjectIsTheStoresWord) {
  LoopbackServer cache([](const Request&) { return Answer{.status = 404}; });
  serve("a", "0123456789", "\"1\"");
  const auto store = open_via({cache.url()});
  EXPECT_EQ(text(store->read("a")), "0123456789");
  EXPECT_EQ(text(store->read("b")), "(missing)");
}

TEST_F(SharedCachesTest, OneThatIsGoneIsLeftAloneAndRetriesAreNotSpent) {
  serve("a", "0123456789", "\"1\"");
  int port;
  {
    port = LoopbackServer([](const Request&) { return Answer{}; }).port();
  }
  const auto store = open_via({"http://127.0.0.1:" + std::to_string(port)});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(text(store->read("a")), "0123456789");
  EXPECT_EQ(counter(*store, "via_failures"), 3u);
  EXPECT_EQ(counter(*store, "via_fallbacks"), 5u);
  EXPECT_EQ(counter(*store, "retries"), 0u);
}

TEST_F(SharedCachesTest, OneThatHangsIsOvertaken) {
  serve("a", "0123456789", "\"1\"");
  LoopbackServer cache([](const Request&) { return Answer{.delay = milliseconds(60'000)}; });
  const auto store = open_via({cache.url()});
  std::vector<std::future<std::string>> reads;
  for (int i = 0; i < 30; ++i)
    reads.push_back(std::async(std::launch::async, [&store, i] {
      return text(store->read("a", {static_cast<std::uint64_t>(i % 10), 1}));
    }));
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(reads[i].get(), std::to_string(i % 10));
  EXPECT_TRUE(caches->is_left_alone(0, 1));
}

TEST_F(SharedCachesTest, FewReadsAtATimeGoPastCachesThatFail) {
  for (int i = 0; i < 100; ++i) there.objects["/k" + std::to_string(i)] = std::to_string(i);
  there.fault = [](const Request&, int) -> std::optional<Answer> {
    std::this_thread::sleep_for(milliseconds(5));
    return std::nullopt;
  };
  LoopbackServer cache([](const Request&) { return Answer{.status = 500}; });
  const auto store = open_via({cache.url()});
  std::vector<std::promise<std::string>> done(100);
  for (std::size_t i = 0; i < 100; ++i)
    store->read_async("k" + std::to_string(i), {}, [&done, i](ReadOutcome outcome) {
      const auto* bytes = std::get_if<std::optional<Buffer>>(&outcome);
      done[i].set_value(bytes != nullptr ? text(*bytes) : "an error");
    });
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(done[i].get_future().get(), std::to_string(i));
  EXPECT_LE(there.server.most_at_once(), 256 / 8);
}

TEST_F(SharedCachesTest, ClosingEndsReadsThatWait) {
  LoopbackServer cache([](const Request&) { return Answer{.delay = milliseconds(60'000)}; });
  auto store = open_via({cache.url()});
  std::promise<bool> ended;
  store->read_async("a", {}, [&ended](ReadOutcome outcome) {
    ended.set_value(std::holds_alternative<std::exception_ptr>(outcome));
  });
  while (cache.requests() == 0) std::this_thread::sleep_for(milliseconds(1));
  store.reset();
  EXPECT_TRUE(ended.get_future().get());
}

}  // namespace object_requests_test

}  // namespace batchfs
