#include "engine/store/cloud/http_store.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/store/cloud/object_server.h"

namespace batchfs {

namespace http_store_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpStore, SendsPathQueryAndPassword) {
  LoopbackServer server([](const LoopbackServer::Request& request) -> LoopbackServer::Answer {
    const auto authorization = request.headers.find("authorization");
    return {.body = request.target + " " +
                    (authorization == request.headers.end() ? "" : authorization->second)};
  });
  const std::string host = server.url().substr(std::string("http://").size());
  const auto store = open_store("http://me:secret@" + host + "/data/w.zarr/?sig=hidden", {});
  // base64 of "me:secret"
  EXPECT_EQ(text(store->read("t2m/0.0")), "/data/w.zarr/t2m/0.0?sig=hidden Basic bWU6c2VjcmV0");
  EXPECT_EQ(store->url(), server.url() + "/data/w.zarr");
  EXPECT_FALSE(store->can_list());
  EXPECT_FALSE(store->is_local());
  EXPECT_EQ(text(open_store("http://me@" + host, {})->read("a")), "/a Basic bWU6");
}

TEST(HttpStore, AKeyMayStandForAnAddressWithAQuery) {
  LoopbackServer server([](const LoopbackServer::Request& request) -> LoopbackServer::Answer {
    return {.status = request.target.ends_with("bad") ? 403 : 200, .body = request.target};
  });
  StoreConfig config;
  config.queries = std::make_shared<AddressQueries>();
  const auto key = [&](const std::string& store, const std::string& query) {
    return config.queries->key(store, "a b.nc", query);
  };
  const auto store = open_http_store(server.url() + "/x", config);
  EXPECT_EQ(text(store->read(key(store->url(), "s=a%2Fb/c d&e='"))),
            "/x/a%20b.nc?s=a%2Fb/c%20d&e='");
  EXPECT_EQ(text(store->read("a?b")), "/x/a%3Fb");
  std::string message;
  EXPECT_EQ(code_of([&] { store->read(key(store->url(), "sig=bad")); }, &message),
            ErrorCode::access_denied);
  EXPECT_THAT(message, Not(HasSubstr("sig=")));
  const auto own = open_http_store(server.url() + "/x?fresh=1", config);
  EXPECT_EQ(text(own->read(key(own->url(), "sig=old"))), "/x/a%20b.nc?fresh=1");
}

TEST(HttpStore, ErrorsShowNoSecret) {
  LoopbackServer server(
      [](const LoopbackServer::Request&) -> LoopbackServer::Answer { return {.status = 400}; });
  const std::string host = server.url().substr(std::string("http://").size());
  const auto store = open_store("http://me:secret@" + host + "/x?sig=hidden", {});
  std::string message;
  EXPECT_EQ(code_of([&] { store->read("a"); }, &message), ErrorCode::io);
  EXPECT_THAT(message, HasSubstr(server.url() + "/x/a"));
  EXPECT_THAT(message, Not(HasSubstr("secret")));
  EXPECT_THAT(message, Not(HasSubstr("hidden")));
  EXPECT_EQ(code_of([&] { open_store("http://me:secret@", {}); }, &message),
            ErrorCode::invalid_argument);
  EXPECT_THAT(message, Not(HasSubstr("secret")));
}

TEST(HttpStore, APasswordStaysWithItsHost) {
  LoopbackServer* self = nullptr;
  LoopbackServer server([&](const LoopbackServer::Request& request) -> LoopbackServer::Answer {
    if (request.target == "/x/a")
      return {.status = 302, .headers = {{"Location", self->other_url() + "/elsewhere"}}};
    return {.body = request.headers.contains("authorization") ? "told" : "not told"};
  });
  self = &server;
  const std::string host = server.url().substr(std::string("http://").size());
  EXPECT_EQ(text(open_store("http://me:secret@" + host + "/x", {})->read("a")), "not told");
}

struct ForbiddenTest : ObjectStoreTest {
  static constexpr const char* kDenied = "<Error><Code>AccessDenied</Code></Error>";

  /// Objects that are not there are answered with this.
  void absent(Answer answer) {
    there.objects["/.zmetadata"] = "{}";
    there.fault = [this, answer](const Request& request, int) -> std::optional<Answer> {
      const std::string path = request.target.substr(0, request.target.find('?'));
      if (const auto it = there.objects.find(path); it != there.objects.end())
        return LoopbackServer::object(request, it->second);
      return path == "/secret" ? Answer{.status = 403, .body = kDenied} : answer;
    };
  }
};

TEST_F(ForbiddenTest, MeansMissingWhereAnAbsentObjectIsForbiddenToo) {
  absent({.status = 403, .body = kDenied});
  const auto store = open();
  EXPECT_EQ(code_of([&] { store->read("zarr.json"); }), ErrorCode::access_denied)
      << "nothing was read so far";
  EXPECT_EQ(text(store->read(".zmetadata")), "{}");
  EXPECT_EQ(text(store->read("t2m/0.0")), "(missing)");
  const int before = there.server.requests();
  EXPECT_EQ(text(store->read("t2m/0.1")), "(missing)");
  EXPECT_EQ(there.server.requests() - before, 1) << "it is found out once";
}

TEST_F(ForbiddenTest, MeansDeniedWhereAnAbsentObjectIsNotFound) {
  absent({.status = 404});
  const auto store = open();
  EXPECT_EQ(text(store->read(".zmetadata")), "{}");
  EXPECT_EQ(code_of([&] { store->read("secret"); }), ErrorCode::access_denied);
  EXPECT_EQ(text(store->read("none")), "(missing)");
}

TEST_F(ForbiddenTest, MeansDeniedWhenItMayBeForAnotherReason) {
  absent({.status = 403, .body = "<html>too many requests from your address"});
  EXPECT_EQ(text(open()->read(".zmetadata")), "{}");
  const auto store = open();
  EXPECT_EQ(text(store->read(".zmetadata")), "{}");
  EXPECT_EQ(code_of([&] { store->read("none"); }), ErrorCode::access_denied);
  // A signature may have expired.
  absent({.status = 403, .body = kDenied});
  const auto signed_store = open_store(there.server.url() + "/?sig=x", {});
  EXPECT_EQ(text(signed_store->read(".zmetadata")), "{}");
  EXPECT_EQ(code_of([&] { signed_store->read("none"); }), ErrorCode::access_denied);
}

TEST(HttpStore, UnknownSchemesAreRefused) {
  EXPECT_EQ(code_of([] { open_store("gopher://host/x", {}); }), ErrorCode::not_supported);
  EXPECT_EQ(code_of([] { open_store("http://", {}); }), ErrorCode::invalid_argument);
}

}  // namespace http_store_test

}  // namespace batchfs
