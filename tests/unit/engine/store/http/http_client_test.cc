#include "engine/store/http/http_client.h"

#include <condition_variable>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/loopback_server.h"

namespace batchfs {

namespace http_client_test {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Answer = LoopbackServer::Answer;
using Request = LoopbackServer::Request;

std::string text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

/// The error that a request ends with.
Error failure(HttpClient& client, HttpRequest request) {
  try {
    const HttpResponse response = client.send_and_wait(std::move(request));
    ADD_FAILURE() << "an answer with status " << response.status;
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "no error");
}

void expect_idle(const HttpClient& client) {
  EXPECT_EQ(client.counters().in_flight, 0u);
  EXPECT_EQ(client.counters().waiting, 0u);
}

TEST(HttpClient, GivesTheAnswer) {
  LoopbackServer server([](const Request& request) -> Answer {
    if (request.target == "/none") return {.status = 404, .body = "gone"};
    return {.headers = {{"X-Thing", " a b "}}, .body = request.method + " " + request.target};
  });
  HttpClient client;
  const HttpResponse response = client.send_and_wait({.url = server.url() + "/a%20b?c=d"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(text(response.body), "GET /a%20b?c=d");
  ASSERT_NE(find_header(response.headers, "x-thing"), nullptr);
  EXPECT_EQ(*find_header(response.headers, "x-thing"), "a b");
  EXPECT_EQ(find_header(response.headers, "x-other"), nullptr);
  EXPECT_EQ(response.effective_url, server.url() + "/a%20b?c=d");

  const HttpResponse missing = client.send_and_wait({.url = server.url() + "/none"});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(text(missing.body), "gone");
  EXPECT_EQ(server.connections(), 1) << "the connection is kept";
  expect_idle(client);
  EXPECT_EQ(client.counters().requests, 2u);
  EXPECT_EQ(client.counters().bytes_received, response.body.size() + 4);
}

TEST(HttpClient, SendsMethodHeadersAndBody) {
  LoopbackServer server([](const Request& request) -> Answer {
    return {.body = request.method + "|" + request.body + "|" +
                    (request.headers.contains("x-token") ? request.headers.at("x-token") : "")};
  });
  HttpClient client;
  EXPECT_EQ(text(client
                     .send_and_wait({.method = "POST",
                                     .url = server.url(),
                                     .headers = {{"X-Token", "t"}},
                                     .body = "b=1"})
                     .body),
            "POST|b=1|t");
  EXPECT_EQ(text(client.send_and_wait({.method = "PUT", .url = server.url()}).body), "PUT||");
  const HttpResponse head = client.send_and_wait({.method = "HEAD", .url = server.url()});
  EXPECT_EQ(head.body.size(), 0u);
  EXPECT_EQ(*find_header(head.headers, "content-length"), "6");
  EXPECT_EQ(failure(client, {.url = server.url(), .headers = {{"X", "a\r\nY: b"}}}).code(),
            ErrorCode::invalid_argument);
}

TEST(HttpClient, ReadsRanges) {
  const std::string object = "0123456789";
  LoopbackServer server(
      [&](const Request& request) { return LoopbackServer::object(request, object); });
  HttpClient client;
  const auto get = [&](ByteRange range) {
    return text(client.send_and_wait({.url = server.url(), .range = range}).body);
  };
  EXPECT_EQ(get({2, 3}), "234");
  EXPECT_EQ(get({7, 100}), "789");
  EXPECT_EQ(get({4, UINT64_MAX}), "456789");
  EXPECT_EQ(get({0, 4, true}), "6789");
}

TEST(HttpClient, CutsTheRangeOutOfAWholeObject) {
  std::string object(3 << 20, '\0');
  for (std::size_t i = 0; i < object.size(); ++i) object[i] = static_cast<char>(i * 7 + i / 251);
  for (const bool chunked : {false, true}) {
    LoopbackServer server(
        [&](const Request&) { return Answer{.body = object, .chunked = chunked}; });
    HttpClient client;
    const auto get = [&](ByteRange range) {
      HttpResponse response = client.send_and_wait({.url = server.url(), .range = range});
      EXPECT_EQ(response.status, 200);
      return text(response.body);
    };
    EXPECT_EQ(get({100, 1000}), object.substr(100, 1000));
    EXPECT_EQ(get({1 << 20, 300'000}), object.substr(1 << 20, 300'000));
    EXPECT_EQ(get({0, 77, true}), object.substr(object.size() - 77));
    EXPECT_EQ(get({2 << 20, UINT64_MAX}), object.substr(2 << 20));
    EXPECT_EQ(get({4 << 20, 10}), "");
    expect_idle(client);
  }
}

TEST(HttpClient, RefusesLongAnswers) {
  for (const bool chunked : {false, true}) {
    LoopbackServer server([&](const Request& request) -> Answer {
      const bool is_part = request.headers.contains("range");
      std::vector<std::pair<std::string, std::string>> headers;
      if (is_part) headers = {{"Content-Range", "bytes 0-9/5000"}};
      return {.status = is_part ? 206 : 200,
              .headers = std::move(headers),
              .body = std::string(5000, 'x'),
              .chunked = chunked};
    });
    HttpClient client;
    EXPECT_EQ(failure(client, {.url = server.url(), .largest_body = 4999}).code(),
              ErrorCode::corrupt);
    EXPECT_EQ(failure(client, {.url = server.url(), .range = ByteRange{0, 10}}).code(),
              ErrorCode::corrupt);
    EXPECT_EQ(client.send_and_wait({.url = server.url(), .largest_body = 5000}).body.size(), 5000u);
  }
}

TEST(HttpClient, AHugeClaimCostsNoMemory) {
  LoopbackServer server([&](const Request&) -> Answer {
    return {.body = "abc", .claimed_length = std::size_t{3} << 30, .end_after = 3};
  });
  HttpClient client;
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::io);
}

TEST(HttpClient, BrokenAnswersAreErrors) {
  Answer answer;
  LoopbackServer server([&](const Request&) { return answer; });
  HttpClient client;
  answer = {.body = "0123456789", .end_after = 4};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::io);
  answer = {.body = "0123456789", .end_after = 4, .reset = true};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::io);
  answer = {.hang_up = true};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::io);
  answer = {.body = "SSH-2.0-nonsense\r\n", .raw = true};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::corrupt);
  std::string headers = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 20'000; ++i) headers += "X-Header-" + std::to_string(i) + ": and a value\r\n";
  answer = {.body = headers, .raw = true};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::corrupt);
  answer = {.body = "good"};
  EXPECT_EQ(text(client.send_and_wait({.url = server.url()}).body), "good")
      << "the client lives on";
  expect_idle(client);
}

TEST(HttpClient, StallsAndDripsTimeOut) {
  Answer answer;
  LoopbackServer server([&](const Request&) { return answer; });
  HttpClient client({.timeout = 0.2});
  answer = {.delay = milliseconds(60'000)};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::timed_out);
  answer = {.body = "0123456789", .stall_after = 4};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::timed_out);
  answer = {.body = std::string(100'000, 'x'), .drip = milliseconds(20)};
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::timed_out);
  expect_idle(client);
}

TEST(HttpClient, NamesWhatIsNotThere) {
  HttpClient client;
  const Error unknown = failure(client, {.url = "http://no-such-host.invalid/a?secret=x"});
  EXPECT_EQ(unknown.code(), ErrorCode::io);
  EXPECT_THAT(unknown.why(), HasSubstr("no-such-host.invalid"));
  EXPECT_THAT(unknown.what(), ::testing::Not(HasSubstr("secret")));
  int port;
  {
    port = LoopbackServer([](const Request&) { return Answer{}; }).port();
  }
  EXPECT_EQ(failure(client, {.url = "http://127.0.0.1:" + std::to_string(port)}).code(),
            ErrorCode::io);
  EXPECT_EQ(failure(client, {.url = "file:///etc/passwd"}).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(failure(client, {.url = "nonsense"}).code(), ErrorCode::io);
}

TEST(HttpClient, FollowsRedirects) {
  LoopbackServer* self = nullptr;
  LoopbackServer server([&](const Request& request) -> Answer {
    if (request.target == "/same")
      return {.status = 302, .headers = {{"Location", "/end"}}, .body = "moved"};
    if (request.target == "/other")
      return {.status = 307, .headers = {{"Location", self->other_url() + "/end"}}};
    if (request.target == "/circle") return {.status = 301, .headers = {{"Location", "/circle"}}};
    if (request.target == "/file")
      return {.status = 301, .headers = {{"Location", "file:///etc/passwd"}}};
    return {.body = request.headers.contains("authorization") ? "with" : "without"};
  });
  self = &server;
  HttpClient client;
  const HttpHeaders secret = {{"Authorization", "Bearer x"}};
  const HttpResponse same =
      client.send_and_wait({.url = server.url() + "/same", .headers = secret});
  EXPECT_EQ(text(same.body), "with");
  EXPECT_EQ(same.effective_url, server.url() + "/end");
  EXPECT_EQ(text(client.send_and_wait({.url = server.url() + "/other", .headers = secret}).body),
            "without");
  const int before = server.requests();
  EXPECT_EQ(failure(client, {.url = server.url() + "/circle"}).code(), ErrorCode::not_supported);
  EXPECT_EQ(server.requests() - before, 6);
  EXPECT_EQ(failure(client, {.url = server.url() + "/file"}).code(), ErrorCode::not_supported);
  const HttpResponse not_followed =
      client.send_and_wait({.url = server.url() + "/same", .follow_redirects = false});
  EXPECT_EQ(not_followed.status, 302);
  expect_idle(client);
}

TEST(HttpClient, RunsManyAtOnceUpToTheLimit) {
  LoopbackServer server([](const Request& request) -> Answer {
    return {.body = request.target, .delay = milliseconds(20)};
  });
  HttpClient client({.first_in_flight = 8, .most_in_flight = 8});
  std::vector<std::promise<std::string>> bodies(100);
  for (std::size_t i = 0; i < bodies.size(); ++i)
    client.send({.url = server.url() + "/" + std::to_string(i)},
                [&promise = bodies[i]](HttpOutcome outcome) {
                  promise.set_value(text(std::get<HttpResponse>(outcome).body));
                });
  for (std::size_t i = 0; i < bodies.size(); ++i)
    EXPECT_EQ(bodies[i].get_future().get(), "/" + std::to_string(i));
  EXPECT_LE(server.most_at_once(), 8);
  EXPECT_GT(server.most_at_once(), 1);
  EXPECT_LE(server.connections(), 8);
  expect_idle(client);
}

TEST(HttpClient, CancelEndsARequest) {
  LoopbackServer server([](const Request&) -> Answer { return {.delay = milliseconds(60'000)}; });
  HttpClient client({.first_in_flight = 1, .most_in_flight = 1});
  std::promise<HttpOutcome> active, waiting;
  const auto first =
      client.send({.url = server.url()}, [&](HttpOutcome o) { active.set_value(std::move(o)); });
  const auto second =
      client.send({.url = server.url()}, [&](HttpOutcome o) { waiting.set_value(std::move(o)); });
  client.cancel(second);
  EXPECT_TRUE(std::holds_alternative<std::exception_ptr>(waiting.get_future().get()));
  client.cancel(first);
  EXPECT_TRUE(std::holds_alternative<std::exception_ptr>(active.get_future().get()));
  client.cancel(first);
  client.cancel(12345);
  expect_idle(client);
}

TEST(HttpClient, DestructionEndsEverything) {
  LoopbackServer server([](const Request&) -> Answer { return {.delay = milliseconds(60'000)}; });
  std::atomic<int> ended{0};
  {
    HttpClient client({.first_in_flight = 4, .most_in_flight = 4});
    for (int i = 0; i < 10; ++i)
      client.send({.url = server.url()}, [&](HttpOutcome outcome) {
        try {
          std::rethrow_exception(std::get<std::exception_ptr>(outcome));
        } catch (const Error& error) {
          if (error.code() == ErrorCode::interrupted) ++ended;
        }
      });
  }
  EXPECT_EQ(ended, 10);
}

TEST(HttpClient, StopEndsEverythingThatIsAndComes) {
  LoopbackServer server([](const Request&) -> Answer { return {.delay = milliseconds(60'000)}; });
  HttpClient client({.first_in_flight = 4, .most_in_flight = 4});
  std::thread stopper([&] {
    while (server.requests() == 0) std::this_thread::sleep_for(milliseconds(1));
    client.stop();
  });
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::interrupted);
  stopper.join();
  EXPECT_EQ(failure(client, {.url = server.url()}).code(), ErrorCode::interrupted);
  EXPECT_EQ(server.requests(), 1);
  expect_idle(client);
}

TEST(HttpClient, ACallbackMaySendTheNext) {
  LoopbackServer server([](const Request& request) -> Answer { return {.body = request.target}; });
  HttpClient client;
  std::promise<std::string> last;
  std::function<void(int)> next = [&](int i) {
    client.send({.url = server.url() + "/" + std::to_string(i)}, [&, i](HttpOutcome outcome) {
      EXPECT_TRUE(client.is_own_thread());
      EXPECT_THROW(client.send_and_wait({.url = server.url()}), Error);
      if (i < 20)
        next(i + 1);
      else
        last.set_value(text(std::get<HttpResponse>(outcome).body));
    });
  };
  next(0);
  EXPECT_EQ(last.get_future().get(), "/20");
  EXPECT_FALSE(client.is_own_thread());
}

}  // namespace http_client_test

}  // namespace batchfs
