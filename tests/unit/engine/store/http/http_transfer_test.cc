// One request, driven step by step like HttpClient's loop: covers cases that HttpClient's own tests
// cannot reach.

#include "engine/store/http/http_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/loopback_server.h"

namespace batchfs {

namespace http_transfer_test {

using ::testing::HasSubstr;
using ::testing::Not;
using Answer = LoopbackServer::Answer;
using Request = LoopbackServer::Request;

const HttpTransfer::Settings kSettings{.timeout = 8, .connect_timeout = 4};

/// A request with its easy handle, without the proxy of the environment.
class Played {
 public:
  explicit Played(HttpRequest request)
      : transfer(1, std::move(request),
                 [this](HttpOutcome outcome) { done.push_back(std::move(outcome)); }) {}

  CURLcode perform(const HttpTransfer::Settings& settings = kSettings) {
    transfer.prepare(easy_.get(), settings);
    curl_easy_setopt(easy_.get(), CURLOPT_NOPROXY, "*");
    return curl_easy_perform(easy_.get());
  }
  HttpResponse response(CURLcode code) { return std::get<HttpResponse>(transfer.outcome(code)); }
  Error error(CURLcode code) {
    HttpOutcome outcome = transfer.outcome(code);
    if (const auto* failed = std::get_if<std::exception_ptr>(&outcome)) {
      try {
        std::rethrow_exception(*failed);
      } catch (const Error& error) {
        return error;
      }
    }
    ADD_FAILURE() << "an answer";
    return Error(ErrorCode::internal, "an answer");
  }

  std::vector<HttpOutcome> done;

 private:
  struct Cleanup {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  const std::unique_ptr<CURL, Cleanup> easy_{curl_easy_init()};

 public:
  HttpTransfer transfer;  // destroyed before its handle
};

TEST(HttpTransfer, HeadersAreThoseOfTheLastAnswerWithoutTheSpaceAround) {
  LoopbackServer server([](const Request&) -> Answer {
    return {
        .body =
            "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n"
            "HTTP/1.1 200 Good\r\nX-Late: \t a  b \t \r\nX-EMPTY:\r\nContent-Length: 2\r\n\r\nok",
        .raw = true};
  });
  Played played({.url = server.url()});
  const HttpResponse response = played.response(played.perform());
  EXPECT_EQ(find_header(response.headers, "x-early"), nullptr);
  EXPECT_EQ(*find_header(response.headers, "x-late"), "a  b");
  EXPECT_EQ(*find_header(response.headers, "x-empty"), "");
  EXPECT_EQ(response.status, 200);
}

TEST(HttpTransfer, WhatIsSentHoldsNoLineBreaksAndKeepsEmptyHeaders) {
  LoopbackServer server([](const Request& request) -> Answer {
    return {.body = request.headers.contains("x-empty") ? "[" + request.headers.at("x-empty") + "]"
                                                        : "none"};
  });
  Played empty({.url = server.url(), .headers = {{"X-Empty", ""}}});
  EXPECT_EQ(empty.response(empty.perform()).body.size(), 2u);
  for (const std::string& bad :
       {std::string("a\nb"), std::string("a\rb"), std::string("a\0b", 3)}) {
    for (const auto& header : {std::pair<std::string, std::string>{"X", bad}, {bad, "x"}}) {
      Played played({.url = "http://user:secret@host/?token=secret", .headers = {header}});
      try {
        played.perform();
        ADD_FAILURE() << "was sent";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_THAT(error.what(), Not(HasSubstr("secret")));
      }
    }
  }
}

TEST(HttpTransfer, OfALongErrorDocumentTheBeginningIsKept) {
  const std::string page(1 << 20, 'e');
  for (const bool chunked : {false, true}) {
    LoopbackServer server([&](const Request&) -> Answer {
      return {.status = 503, .body = page, .chunked = chunked};
    });
    Played played({.url = server.url(), .range = ByteRange{100, 10}, .largest_body = 5});
    const HttpResponse response = played.response(played.perform());
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.body.size(), std::size_t{256} << 10);
    EXPECT_GE(response.body_received, response.body.size());
  }
}

TEST(HttpTransfer, AnObjectThatIsShorterThanTheRangesOffsetIsEmpty) {
  LoopbackServer server([&](const Request&) -> Answer { return {.body = "0123456789"}; });
  Played behind({.url = server.url(), .range = ByteRange{UINT64_MAX - 5, 5}});
  EXPECT_EQ(behind.response(behind.perform()).body.size(), 0u);
  Played tail({.url = server.url(), .range = ByteRange{0, UINT64_MAX, true}});
  EXPECT_EQ(tail.response(tail.perform()).body.size(), 10u);
}

TEST(HttpTransfer, OfAnObjectOfUnknownLengthOnlyTheEndIsKept) {
  std::string object(20 << 20, 'x');
  object += "the end";
  LoopbackServer server(
      [&](const Request&) -> Answer { return {.body = object, .chunked = true}; });
  Played tail({.url = server.url(), .range = ByteRange{0, 7, true}});
  const HttpResponse response = tail.response(tail.perform());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(response.body.data()), response.body.size()),
            "the end");
  EXPECT_EQ(response.body_received, object.size());
  Played refused({.url = server.url(), .range = ByteRange{0, 7, true}, .largest_body = 4 << 20});
  EXPECT_EQ(refused.error(refused.perform()).code(), ErrorCode::corrupt);
}

TEST(HttpTransfer, ARedirectNamesTheNewPlaceAndStartsAnew) {
  LoopbackServer* self = nullptr;
  LoopbackServer server([&](const Request& request) -> Answer {
    if (request.target == "/a")
      return {.status = 302,
              .headers = {{"Location", self->other_url() + "/b"}, {"X-Of", "a"}},
              .body = "moved"};
    return {.headers = {{"X-Of", "b"}}, .body = "here"};
  });
  self = &server;
  const auto progress = std::make_shared<HttpProgress>();
  Played played({.url = server.url() + "/a",
                 .headers = {{"Authorization", "Bearer x"},
                             {"Cookie", "c"},
                             {"X-Token", "t"},
                             {"If-Match", "\"e\""},
                             {"ACCEPT", "a/b"}},
                 .range = ByteRange{0, 100},
                 .progress = progress});
  const CURLcode first = played.perform();
  EXPECT_EQ(progress->first_received >= progress->started, true);
  const std::int64_t started = progress->started;
  ASSERT_TRUE(played.transfer.redirect(first));
  const CURLcode second = played.perform();
  EXPECT_FALSE(played.transfer.redirect(second));
  const HttpResponse response = played.response(second);
  EXPECT_EQ(response.body.size(), 4u);
  EXPECT_EQ(response.body_received, 4u);
  EXPECT_EQ(*find_header(response.headers, "x-of"), "b");
  EXPECT_EQ(response.effective_url, server.other_url() + "/b");
  EXPECT_EQ(progress->started, started) << "it is the same request to who waits for it";
  // Secret headers are not sent to another host, whatever their names.
  const auto sent = server.log().back().headers;
  for (const char* secret : {"authorization", "cookie", "x-token"})
    EXPECT_FALSE(sent.contains(secret)) << secret;
  EXPECT_EQ(sent.at("if-match"), "\"e\"");
  EXPECT_EQ(sent.at("accept"), "a/b");
  EXPECT_EQ(sent.at("range"), "bytes=0-99");
}

TEST(HttpTransfer, NotEverythingIsRedirected) {
  std::string location = "/b";
  int status = 302;
  LoopbackServer server([&](const Request&) -> Answer {
    Answer answer{.status = status, .body = "moved"};
    if (!location.empty()) answer.headers.emplace_back("Location", location);
    return answer;
  });
  const auto redirects = [&](HttpRequest request) {
    request.url = server.url() + "/a";
    Played played(std::move(request));
    return played.transfer.redirect(played.perform());
  };
  EXPECT_TRUE(redirects({}));
  EXPECT_TRUE(redirects({.method = "HEAD"}));
  EXPECT_FALSE(redirects({.method = "POST", .body = "b"})) << "it might be done twice";
  EXPECT_FALSE(redirects({.follow_redirects = false}));
  for (const int other : {200, 300, 304, 404}) {
    status = other;
    EXPECT_FALSE(redirects({})) << other;
  }
  status = 301;
  for (const char* refused : {"ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://x/"}) {
    location = refused;
    try {
      redirects({});
      ADD_FAILURE() << refused;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
    }
  }
  location = "";
  EXPECT_FALSE(redirects({}));
}

/// A server that never accepts: its queue is full, so the next connection attempt waits.
class FullQueue {
 public:
  FullQueue() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 0), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    for (int& fd : waiting_) {
      fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      ::connect(fd, reinterpret_cast<sockaddr*>(&address), size);
    }
  }
  ~FullQueue() {
    for (const int fd : waiting_) ::close(fd);
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int listener_ = -1, port_ = 0, waiting_[4] = {};
};

TEST(HttpTransfer, ConnectingThatTakesFarLongerThanUsualIsGivenUpAndTriedMorePatiently) {
  FullQueue queue;
  const auto progress = std::make_shared<HttpProgress>();
  Played played({.url = queue.url(), .progress = progress});
  const HttpTransfer::Settings hurried{
      .timeout = 0.7, .connect_timeout = 0.7, .usual_connect = 0.0001};
  // 0.2 s, 0.4 s, and then the limit of 0.7 s.
  for (int time = 0; time < 2; ++time) {
    const CURLcode code = played.perform(hurried);
    ASSERT_EQ(code, CURLE_OPERATION_TIMEDOUT);
    ASSERT_TRUE(played.transfer.lost_patience(code)) << time;
    EXPECT_EQ(progress->started, 0) << "it waits for its turn again";
  }
  const CURLcode code = played.perform(hurried);
  ASSERT_EQ(code, CURLE_OPERATION_TIMEDOUT);
  EXPECT_FALSE(played.transfer.lost_patience(code));
  const Error error = played.error(code);
  EXPECT_EQ(error.code(), ErrorCode::timed_out);
  EXPECT_THAT(error.why(), HasSubstr("connecting to 127.0.0.1"));
}

TEST(HttpTransfer, WithoutAUsualTimeThereIsNoHurry) {
  FullQueue queue;
  Played played({.url = queue.url(), .timeout = 0.1});
  const CURLcode code = played.perform();
  EXPECT_EQ(code, CURLE_OPERATION_TIMEDOUT);
  EXPECT_FALSE(played.transfer.lost_patience(code));
}

TEST(HttpTransfer, StallsAfterATimeWithoutProgress) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  LoopbackServer server(
      [](const Request&) -> Answer { return {.body = std::string(1 << 20, 'x')}; });
  Played played({.url = server.url()});
  const std::int64_t before = steady_now();
  const CURLcode code = played.perform();  // a megabyte has arrived
  const std::int64_t after = steady_now();
  const double took = static_cast<double>(after - before) * 1e-9;
  EXPECT_FALSE(played.transfer.stalls(before + kSecond / 2, kSettings))
      << "it is looked at once a second";
  EXPECT_FALSE(played.transfer.stalls(after + 20 * kSecond, kSettings))
      << "it was fast enough all the time";
  EXPECT_FALSE(played.transfer.stalls(after + 27 * kSecond, kSettings));
  EXPECT_TRUE(played.transfer.stalls(after + 29 * kSecond, kSettings))
      << "nothing in 9 s, " << took;
  const Error stalled = played.transfer.stall_error();
  EXPECT_EQ(stalled.code(), ErrorCode::timed_out);
  EXPECT_THAT(stalled.why(), HasSubstr("stalled"));
  EXPECT_EQ(played.response(code).body.size(), std::size_t{1} << 20);

  LoopbackServer silent([](const Request&) -> Answer { return {.hang_up = true}; });
  Played nothing({.url = silent.url(), .timeout = 2});
  nothing.perform();
  EXPECT_FALSE(nothing.transfer.stalls(before + kSecond, kSettings));
  EXPECT_TRUE(nothing.transfer.stalls(steady_now() + 3 * kSecond, kSettings))
      << "the request's own time counts";
  EXPECT_THAT(nothing.transfer.stall_error().why(), HasSubstr("does not answer"));
}

TEST(HttpTransfer, FailuresAreNamedWithoutSecrets) {
  const auto error_of_code = [](CURLcode code, const std::string& url =
                                                   "https://user:secret@host:444/a?token=secret") {
    Played played({.url = url});
    played.transfer.prepare(curl_easy_init(), kSettings);
    const Error error = played.error(code);
    curl_easy_cleanup(played.transfer.easy());
    EXPECT_THAT(error.what(), Not(HasSubstr("secret"))) << code;
    return error;
  };
  EXPECT_EQ(error_of_code(CURLE_PEER_FAILED_VERIFICATION).code(), ErrorCode::access_denied);
  EXPECT_THAT(error_of_code(CURLE_PEER_FAILED_VERIFICATION).why(), HasSubstr("SSL_CERT_FILE"));
  EXPECT_EQ(error_of_code(CURLE_SSL_CACERT_BADFILE).code(), ErrorCode::access_denied);
  EXPECT_EQ(error_of_code(CURLE_SSL_CONNECT_ERROR).code(), ErrorCode::io);
  EXPECT_THAT(error_of_code(CURLE_COULDNT_RESOLVE_HOST).why(), HasSubstr("host:444"));
  EXPECT_THAT(error_of_code(CURLE_COULDNT_RESOLVE_PROXY).why(), HasSubstr("proxy"));
  EXPECT_EQ(error_of_code(CURLE_OPERATION_TIMEDOUT).code(), ErrorCode::timed_out);
  EXPECT_EQ(error_of_code(CURLE_HTTP2_STREAM).code(), ErrorCode::io);
  EXPECT_EQ(error_of_code(CURLE_WEIRD_SERVER_REPLY).code(), ErrorCode::corrupt);
  EXPECT_EQ(error_of_code(CURLE_OUT_OF_MEMORY).code(), ErrorCode::no_memory);
  EXPECT_EQ(error_of_code(CURLE_UNSUPPORTED_PROTOCOL).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of_code(CURLE_URL_MALFORMAT, "http://[secret").code(),
            ErrorCode::invalid_argument);
}

TEST(HttpTransfer, FinishesOnce) {
  LoopbackServer server([](const Request&) -> Answer { return {.body = "x"}; });
  Played played({.url = server.url()});
  const CURLcode code = played.perform();
  EXPECT_TRUE(played.done.empty());
  played.transfer.finish(played.transfer.outcome(code));
  ASSERT_EQ(played.done.size(), 1u);
  EXPECT_EQ(std::get<HttpResponse>(played.done[0]).body.size(), 1u);
  EXPECT_EQ(played.transfer.received(), 1u);
}

TEST(HttpTransfer, AGatewayGetsTheRequestInPlaceOfTheServer) {
  LoopbackServer gateway([](const Request&) { return Answer{.body = "bytes"}; });
  struct Case {
    const char *url, *target, *host;
  };
  for (const Case& each :
       {Case{"https://bucket.example/a%20b/c?v=1", "/a%20b/c?v=1", "bucket.example"},
        Case{"https://bucket.example:443/k", "/k", "bucket.example"},
        Case{"http://bucket.example:9000/k", "/k", "bucket.example:9000"},
        Case{"http://bucket.example:80", "/", "bucket.example"}}) {
    HttpRequest request{.url = each.url, .headers = {{"Authorization", "signature"}}};
    request.gateway = std::make_shared<HttpGateway>(HttpGateway{gateway.url()});
    Played played(std::move(request));
    const HttpResponse response = played.response(played.perform());
    EXPECT_TRUE(response.from_gateway);
    EXPECT_EQ(response.body.size(), 5u);
    const Request seen = gateway.log().back();
    EXPECT_EQ(seen.target, each.target);
    EXPECT_EQ(seen.headers.at("host"), each.host);
    EXPECT_EQ(seen.headers.at("authorization"), "signature");
  }
}

TEST(HttpTransfer, AGatewaysRedirectsAreNotFollowedAndItsNameStandsInErrors) {
  LoopbackServer gateway([](const Request&) {
    return Answer{.status = 302, .headers = {{"Location", "http://127.0.0.1:9/elsewhere"}}};
  });
  HttpRequest request{.url = "https://bucket.example/k"};
  request.gateway = std::make_shared<HttpGateway>(HttpGateway{gateway.url()});
  Played played(request);
  const CURLcode code = played.perform();
  EXPECT_FALSE(played.transfer.redirect(code));
  EXPECT_EQ(played.response(code).status, 302);

  request.gateway = std::make_shared<HttpGateway>(HttpGateway{"http://127.0.0.1:9"});
  Played refused(request);
  EXPECT_THAT(refused.error(refused.perform()).why(), HasSubstr("127.0.0.1:9"));

  request.gateway =
      std::make_shared<HttpGateway>(HttpGateway{.url = gateway.url(), .socket = "/absent/socket"});
  Played absent(request);
  EXPECT_THAT(absent.error(absent.perform()).why(), HasSubstr("/absent/socket"));
}

}  // namespace http_transfer_test

}  // namespace batchfs
