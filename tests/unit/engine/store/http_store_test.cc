#include "engine/store/http_store.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/store/object_server.h"

namespace batchfs {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpStore, SendsPathQueryAndPassword) {
  LoopbackServer server([](const LoopbackServer::Request& request) -> LoopbackServer::Answer {
    const auto authorization = request.headers.find("authorization");
    return {.body = request.target + " " + (authorization == request.headers.end() ? "" : authorization->second)};
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

TEST(HttpStore, ErrorsShowNoSecret) {
  LoopbackServer server([](const LoopbackServer::Request&) -> LoopbackServer::Answer { return {.status = 400}; });
  const std::string host = server.url().substr(std::string("http://").size());
  const auto store = open_store("http://me:secret@" + host + "/x?sig=hidden", {});
  std::string message;
  EXPECT_EQ(code_of([&] { store->read("a"); }, &message), ErrorCode::io);
  EXPECT_THAT(message, HasSubstr(server.url() + "/x/a"));
  EXPECT_THAT(message, Not(HasSubstr("secret")));
  EXPECT_THAT(message, Not(HasSubstr("hidden")));
  EXPECT_EQ(code_of([&] { open_store("http://me:secret@", {}); }, &message), ErrorCode::invalid_argument);
  EXPECT_THAT(message, Not(HasSubstr("secret")));
}

TEST(HttpStore, APasswordStaysWithItsHost) {
  LoopbackServer* self = nullptr;
  LoopbackServer server([&](const LoopbackServer::Request& request) -> LoopbackServer::Answer {
    if (request.target == "/x/a") return {.status = 302, .headers = {{"Location", self->other_url() + "/elsewhere"}}};
    return {.body = request.headers.contains("authorization") ? "told" : "not told"};
  });
  self = &server;
  const std::string host = server.url().substr(std::string("http://").size());
  EXPECT_EQ(text(open_store("http://me:secret@" + host + "/x", {})->read("a")), "not told");
}

TEST(HttpStore, UnknownSchemesAreRefused) {
  EXPECT_EQ(code_of([] { open_store("gopher://host/x", {}); }), ErrorCode::not_supported);
  EXPECT_EQ(code_of([] { open_store("http://", {}); }), ErrorCode::invalid_argument);
}

}  // namespace

}  // namespace batchfs
