#include "engine/store/cloud/object_reads.h"

#include <atomic>
#include <ctime>
#include <future>

#include <gmock/gmock.h>

#include "engine/store/cloud/s3.h"
#include "engine/store/http/response_checks.h"
#include "tests/unit/engine/store/cloud/object_server.h"

namespace batchfs {

namespace object_reads_test {

using ::testing::HasSubstr;

/// A server whose answers name versions in its own way.
struct ObjectReadsTest : ObjectStoreTest {
  std::atomic<int> number = 0;  // of answers

  /// Each answer has the headers that `habit` gives it by its number.
  void serve(const std::function<HttpHeaders(int)>& habit) {
    there.fault = [this, habit](const Request& request, int) {
      Answer answer = LoopbackServer::object(request, bytes, "");
      for (auto& header : habit(number++)) answer.headers.push_back(header);
      return answer;
    };
  }

  std::string bytes = "0123456789";
};

std::string date(int second) {
  return "Mon, 01 Jan 2024 00:00:" + std::string(second % 60 < 10 ? "0" : "") +
         std::to_string(second % 60) + " GMT";
}

TEST_F(ObjectReadsTest, ReplicasMayNameAnObjectByDifferentVersions) {
  const std::map<std::string, std::function<HttpHeaders(int)>> habits{
      {"ETags",
       [](int n) {
         return HttpHeaders{{"ETag", "\"" + std::to_string(n % 3) + "\""}};
       }},
      {"dates",
       [](int n) {
         return HttpHeaders{{"Last-Modified", date(n % 2)}};
       }},
      {"an ETag or a date",
       [](int n) {
         return n % 2 == 0 ? HttpHeaders{{"ETag", "\"a\""}}
                           : HttpHeaders{{"Last-Modified", date(1)}};
       }},
      {"an ETag or nothing", [](int n) {
         return n % 2 == 0 ? HttpHeaders{{"ETag", "\"a\""}} : HttpHeaders{};
       }}};
  for (const auto& [name, habit] : habits) {
    serve(habit);
    const auto store = open();
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(text(store->read("a", {2, 3})), "234") << name << ", " << i;
    EXPECT_EQ(text(store->read("a")), "0123456789") << name;
    EXPECT_EQ(text(store->read("a", {0, 2, true})), "89") << name;
    EXPECT_EQ(store->size("a"), 10u) << name;
  }
}

TEST_F(ObjectReadsTest, BytesAreThoseOfTheFirstVersion) {
  std::atomic<int> n = 0;
  there.fault = [&n](const Request& request, int) {  // one replica has the next version already
    return n++ % 2 == 0 ? LoopbackServer::object(request, "0123456789", "\"old\"")
                        : LoopbackServer::object(request, "abcdefghij", "\"new\"");
  };
  const auto store = open();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(text(store->read("a", {2, 3})), "234");
}

TEST_F(ObjectReadsTest, ReplicasAreReachedOverOtherConnections) {
  std::atomic<int> other = -1;
  there.fault = [&other](const Request& request, int nth) {
    if (nth == 1) other = request.connection;  // this one leads to a replica from now on
    return LoopbackServer::object(request, "0123456789",
                                  request.connection == other ? "\"b\"" : "\"a\"");
  };
  const auto store = open();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(text(store->read("a", {2, 3})), "234");
}

TEST_F(ObjectReadsTest, DatesThatAreMadeUpAreIgnored) {
  serve([](int n) { return HttpHeaders{{"Last-Modified", date(n)}}; });
  const auto store = open();
  EXPECT_EQ(text(store->read("before")), "0123456789");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(text(store->read("a", {2, 3})), "234");
  EXPECT_EQ(text(store->read("before")), "0123456789");
  const int requests = number;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(text(store->read("a", {2, 3})), "234");
  EXPECT_EQ(number, requests + 8) << "this is found out once";
  bytes = "01234567890";
  for (const char* key : {"before", "a"})
    EXPECT_EQ(code_of([&] { store->read(key); }), ErrorCode::stale) << "another size, " << key;
}

TEST_F(ObjectReadsTest, TheTimeOfTheAnswerIsNoModificationTime) {
  serve([](int) {
    char now[40];
    const std::time_t time = std::time(nullptr);
    std::tm parts{};
    std::strftime(now, sizeof now, "%a, %d %b %Y %H:%M:%S GMT", ::gmtime_r(&time, &parts));
    return HttpHeaders{{"Last-Modified", now}, {"Date", now}};
  });
  const auto store = open();
  EXPECT_EQ(text(store->read("a", {2, 3})), "234");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // the next second
  EXPECT_EQ(text(store->read("a", {5, 3})), "567");
}

TEST_F(ObjectReadsTest, AChangedObjectIsStaleAfterABoundedNumberOfRequests) {
  for (const bool has_tag : {true, false}) {
    int version = 1;
    serve([&](int) {
      return has_tag ? HttpHeaders{{"ETag", "\"" + std::to_string(version) + "\""}}
                     : HttpHeaders{{"Last-Modified", date(version)}};
    });
    const auto store = open();
    EXPECT_EQ(text(store->read("a", {0, 3})), "012");
    version = 2;
    number = 0;
    std::string message;
    EXPECT_EQ(code_of([&] { store->read("a", {3, 3}); }, &message), ErrorCode::stale);
    EXPECT_THAT(message, HasSubstr("has changed since"));
    EXPECT_LE(number, 12);
    version = 1;
    EXPECT_EQ(text(store->read("a", {3, 3})), "345") << "the error is not remembered";
  }
}

TEST_F(ObjectReadsTest, ABucketNamesAVersionOnce) {
  struct Bucket : HttpService {
    using HttpService::HttpService;
    bool names_versions_once() const override { return true; }
  };
  serve([](int n) { return HttpHeaders{{"ETag", "\"" + std::to_string(n % 2) + "\""}}; });
  ObjectStore store(std::make_shared<Bucket>(there.server.url(), client), client, quick_options());
  EXPECT_EQ(text(store.read("a", {0, 3})), "012");
  EXPECT_EQ(code_of([&] { store.read("a", {3, 3}); }), ErrorCode::stale);
  EXPECT_EQ(number, 2);
}

TEST_F(ObjectReadsTest, AStoreThatIsClosedDoesNotWaitForAPause) {
  serve([](int n) {
    return HttpHeaders{{"Last-Modified", date(n)}, {"Date", date(n)}};  // each read pauses
  });
  auto store = open();
  EXPECT_EQ(text(store->read("a", {0, 3})), "012");
  std::promise<ReadOutcome> outcome;
  store->read_async("a", {3, 3}, [&](ReadOutcome got) { outcome.set_value(std::move(got)); });
  while (number < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  store.reset();
  const auto thrown = std::get<std::exception_ptr>(outcome.get_future().get());
  EXPECT_EQ(error_of(thrown).code(), ErrorCode::interrupted);
}

TEST_F(ObjectReadsTest, ABusyServerIsAskedUntilItAnswers) {
  for (const HttpHeaders& headers : {HttpHeaders{{"Retry-After", "0"}}, HttpHeaders{}})
    for (const int status : {429, 503}) {
      RequestOptions options = quick_options();
      options.retries = 0;
      const auto store = open(options);
      there.objects["/known"] = "0123456789";
      there.objects["/a"] = "0123456789";
      there.fault = {};
      EXPECT_EQ(text(store->read("known")), "0123456789");
      there.fault = [&, first = number.load()](const Request& request, int) {
        return request.target == "/a" && number++ < first + 9
                   ? std::optional(Answer{.status = status, .headers = headers})
                   : std::nullopt;
      };
      EXPECT_EQ(text(store->read("a")), "0123456789") << status;
      EXPECT_EQ(counter(*store, "retries"), 9u);
    }
}

}  // namespace object_reads_test

}  // namespace batchfs
