#include "engine/store/cloud/object_store.h"

#include <future>

#include <gmock/gmock.h>

#include "tests/unit/engine/store/cloud/object_server.h"

namespace batchfs {

namespace object_store_test {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 256);
  return bytes;
}

TEST_F(ObjectStoreTest, ReadsObjectsAndRanges) {
  there.objects["/a/b"] = "0123456789";
  there.objects["/empty"] = "";
  const auto store = open();
  EXPECT_EQ(store->url(), there.server.url());
  EXPECT_EQ(text(store->read("a/b")), "0123456789");
  EXPECT_EQ(text(store->read("a/b", {2, 3})), "234");
  EXPECT_EQ(text(store->read("a/b", {8, 30})), "89");
  EXPECT_EQ(text(store->read("a/b", {3, UINT64_MAX})), "3456789");
  EXPECT_EQ(text(store->read("a/b", {0, 4, true})), "6789");
  EXPECT_EQ(text(store->read("a/b", {0, 40, true})), "0123456789");
  EXPECT_EQ(text(store->read("a/b", {10, 3})), "") << "past the end";
  EXPECT_EQ(text(store->read("a/b", {0, 0})), "");
  EXPECT_EQ(text(store->read("empty")), "");
  EXPECT_EQ(text(store->read("empty", {0, 5})), "");
  EXPECT_EQ(text(store->read("empty", {0, 5, true})), "");
  EXPECT_EQ(text(store->read("none")), "(missing)");
  EXPECT_EQ(text(store->read("none", {2, 3})), "(missing)");
  EXPECT_EQ(text(store->read("none", {0, 0})), "(missing)");
  EXPECT_EQ(store->size("a/b"), 10u);
  EXPECT_EQ(store->size("empty"), 0u);
  EXPECT_EQ(store->size("none"), std::nullopt);
  EXPECT_EQ(code_of([&] { store->read("../secret"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { store->list(""); }), ErrorCode::not_supported);
}

TEST_F(ObjectStoreTest, ReadsIntoMemory) {
  there.objects["/a"] = "0123456789";
  const auto store = open();
  std::string out(4, '?');
  const auto into = [&](std::uint64_t offset) {
    return store->read_into("a", offset, std::as_writable_bytes(std::span(out)));
  };
  auto got = into(5);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, 4u);
  EXPECT_EQ(got->object_size, 10u);
  EXPECT_EQ(out, "5678");
  got = into(8);
  EXPECT_EQ(got->bytes, 2u);
  EXPECT_EQ(out, "8978");
  got = into(20);
  EXPECT_EQ(got->bytes, 0u);
  EXPECT_EQ(got->object_size, 10u);
  EXPECT_FALSE(store->read_into("none", 0, std::as_writable_bytes(std::span(out))));
}

TEST_F(ObjectStoreTest, KeysAreEncodedOnce) {
  there.objects["/time%3D2000/a%20b%2Bc%25"] = "good";
  EXPECT_EQ(text(open()->read("time=2000/a b+c%")), "good");
}

TEST_F(ObjectStoreTest, OneRequestForWhatSeveralWant) {
  there.objects["/a"] = pattern(1000);
  there.fault = [&](const Request& request, int) {
    Answer answer = LoopbackServer::object(request, there.objects["/a"]);
    answer.delay = milliseconds(200);
    return answer;
  };
  const auto store = open();
  std::vector<std::promise<std::string>> got(12);
  for (std::size_t i = 0; i < got.size(); ++i)
    store->read_async("a", i % 3 == 0 ? ByteRange{} : ByteRange{i, 10, i % 3 == 1},
                      [&, i](ReadOutcome outcome) {
                        got[i].set_value(text(std::get<std::optional<Buffer>>(outcome)));
                      });
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string& object = there.objects["/a"];
    EXPECT_EQ(got[i].get_future().get(), i % 3 == 0   ? object
                                         : i % 3 == 1 ? object.substr(990)
                                                      : object.substr(i, 10));
  }
  EXPECT_EQ(there.server.requests(), 1);
  EXPECT_EQ(counter(*store, "shared_reads"), 11u);
}

TEST_F(ObjectStoreTest, NearRangesBecomeOne) {
  there.objects["/a"] = pattern(4 << 20);
  const std::string& object = there.objects["/a"];
  const auto store = open();
  std::vector<std::promise<std::string>> got(20);
  const auto offset = [](std::size_t i) {
    return (i * 7 % 20) * 6000;
  };  // in no order, with gaps of 1000
  for (std::size_t i = 0; i < got.size(); ++i)
    store->read_async("a", {offset(i), 5000}, [&, i](ReadOutcome outcome) {
      got[i].set_value(text(std::get<std::optional<Buffer>>(outcome)));
    });
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].get_future().get(), object.substr(offset(i), 5000));
  EXPECT_LT(there.server.requests(), 10);
  // Far from each other: each its own.
  const int before = there.server.requests();
  std::promise<void> first, second;
  store->read_async("a", {0, 10}, [&](ReadOutcome) { first.set_value(); });
  store->read_async("a", {3 << 20, 10}, [&](ReadOutcome) { second.set_value(); });
  first.get_future().get();
  second.get_future().get();
  EXPECT_EQ(there.server.requests() - before, 2);
}

TEST_F(ObjectStoreTest, WrongRangesAreErrorsOrAskedForAgain) {
  there.objects["/a"] = "0123456789";
  Answer wrong;
  int times = 1000;
  there.fault = [&](const Request&, int) -> std::optional<Answer> {
    return times-- > 0 ? std::optional(wrong) : std::nullopt;
  };
  const auto store = open();
  const auto range = [](const std::string& value, const std::string& body) {
    return Answer{.status = 206, .headers = {{"Content-Range", value}}, .body = body};
  };
  for (const Answer& answer :
       {range("bytes 5-7/10", "567"), range("bytes 2-3/10", "23"), range("bytes 2-4/10", "23"),
        range("items 2-4/10", "234"), range("bytes 4-2/10", "234"), range("bytes 2-4/3", "234"),
        Answer{.status = 206, .body = "234"},
        Answer{.status = 416, .headers = {{"Content-Range", "bytes */10"}}},
        Answer{.status = 204}}) {
    wrong = answer;
    times = 1000;
    EXPECT_THAT(code_of([&] {
                  store->read("a", {2, 3});
                }),
                ::testing::AnyOf(ErrorCode::io, ErrorCode::corrupt));
    times = 2;
    EXPECT_EQ(text(store->read("a", {2, 3})), "234");
  }
  for (const Answer& wider : {range("bytes 2-5/10", "2345"), range("bytes 0-9/10", "0123456789")}) {
    wrong = wider;
    times = 1000;
    EXPECT_EQ(text(store->read("a", {2, 3})), "234");
  }
  wrong = range("bytes 0-9/10", "0123456789");
  times = 1000;
  EXPECT_EQ(code_of([&] { store->read("a"); }), ErrorCode::io)
      << "a part where the whole was asked for";
}

TEST_F(ObjectStoreTest, AServerWithoutRanges) {
  there.objects["/a"] = "0123456789";
  for (const bool chunked : {false, true}) {
    there.fault = [chunked](const Request&, int) {
      return Answer{.body = "0123456789", .chunked = chunked};
    };
    const auto store = open();
    EXPECT_EQ(text(store->read("a", {2, 3})), "234");
    EXPECT_EQ(text(store->read("a", {0, 3, true})), "789");
    EXPECT_EQ(text(store->read("a", {8, 5})), "89");
    EXPECT_EQ(text(store->read("a", {12, 5})), "");
    EXPECT_EQ(store->size("a"), 10u);
  }
}

TEST_F(ObjectStoreTest, AChangedObjectIsStale) {
  std::string tag = "\"one\"";
  there.fault = [&](const Request& request, int) {
    return LoopbackServer::object(request, "0123456789", tag);
  };
  const auto store = open();
  EXPECT_EQ(text(store->read("a", {0, 3})), "012");
  EXPECT_EQ(text(store->read("b")), "0123456789");
  tag = "W/\"one\"";
  EXPECT_EQ(text(store->read("a", {3, 3})), "345") << "weak and strong tags of one object";
  tag = "\"two\"";
  std::string message;
  EXPECT_EQ(code_of([&] { store->read("a", {3, 3}); }, &message), ErrorCode::stale);
  EXPECT_THAT(message, HasSubstr("changed"));
  EXPECT_THAT(message, HasSubstr(there.server.url() + "/a"));
  EXPECT_EQ(code_of([&] { store->read("b"); }), ErrorCode::stale);
  EXPECT_EQ(text(store->read("c")), "0123456789") << "first seen now";
}

TEST_F(ObjectStoreTest, AnObjectThatHasGoneIsStaleAndNotMissing) {
  for (const char* tag : {"\"one\"", ""}) {
    bool gone = false;
    there.fault = [&](const Request& request, int) {
      return gone ? Answer{.status = 404} : LoopbackServer::object(request, "0123456789", tag);
    };
    const auto store = open();
    EXPECT_EQ(text(store->read("a", {0, 3})), "012");
    gone = true;
    std::string message;
    EXPECT_EQ(code_of(
                  [&] {
                    store->read("a", {3, 3});
                  },
                  &message),
              ErrorCode::stale)
        << "ETag: " << tag;
    EXPECT_THAT(message, HasSubstr("gone"));
    EXPECT_THAT(message, HasSubstr(there.server.url() + "/a"));
    EXPECT_EQ(code_of([&] { store->size("a"); }), ErrorCode::stale);
    EXPECT_EQ(store->read("b"), std::nullopt) << "never seen";
    gone = false;
    EXPECT_EQ(text(store->read("a", {3, 3})), "345");
    EXPECT_EQ(text(store->read("b")), "0123456789");
  }
}

TEST_F(ObjectStoreTest, AnObjectThatAppearsWhileItIsAskedForIsNotStale) {
  std::atomic<int> requests = 0;
  bool gone = false;
  there.fault = [&](const Request& request, int) {
    if (++requests == 1) return Answer{.status = 404, .delay = milliseconds(300)};
    return gone ? Answer{.status = 404} : LoopbackServer::object(request, "0123456789", "\"one\"");
  };
  for (const bool goes : {false, true}) {
    gone = false;
    requests = 0;
    const auto store = open();
    std::promise<ReadOutcome> late;
    store->read_async("a", {0, 4},
                      [&](ReadOutcome outcome) { late.set_value(std::move(outcome)); });
    while (requests == 0) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(text(store->read("a")), "0123456789");
    gone = goes;
    const ReadOutcome outcome = late.get_future().get();
    if (!goes) {
      EXPECT_EQ(text(std::get<std::optional<Buffer>>(outcome)), "0123");
    } else {
      EXPECT_EQ(error_of(std::get<std::exception_ptr>(outcome)).code(), ErrorCode::stale);
    }
  }
}

TEST_F(ObjectStoreTest, WebPagesAreNoObjects) {
  Answer answer{.headers = {{"Content-Type", "text/html; charset=utf-8"}},
                .body = "  <!DOCTYPE html><p>Log in"};
  there.fault = [&](const Request&, int) { return answer; };
  const auto store = open();
  std::string message;
  EXPECT_EQ(code_of([&] { store->read("a"); }, &message), ErrorCode::corrupt);
  EXPECT_THAT(message, HasSubstr("web page"));
  EXPECT_EQ(code_of([&] { store->read("a", {5, 3}); }), ErrorCode::corrupt);
  EXPECT_EQ(there.server.requests(), 2) << "it will not become something else";
  answer.body = "\x01\x02 binary";
  EXPECT_EQ(text(store->read("a")), "\x01\x02 binary") << "a server that names every file so";
}

TEST_F(ObjectStoreTest, HugeAnswersAreRefused) {
  there.fault = [&](const Request&, int) {
    return Answer{.body = "x", .claimed_length = std::size_t{5} << 30, .end_after = 1};
  };
  const auto store = open();
  EXPECT_EQ(code_of([&] { store->read("a"); }), ErrorCode::corrupt);
}

TEST_F(ObjectStoreTest, AWholeObjectIsReadUpToTheLargestSizeThatIsAskedFor) {
  there.objects["/a"] = std::string(1000, 'x');
  const auto store = open();
  EXPECT_EQ(text(store->read("a", {.largest = 1000})), std::string(1000, 'x'));
  EXPECT_EQ(code_of([&] { store->read("a", {.largest = 999}); }), ErrorCode::corrupt);
}

TEST_F(ObjectStoreTest, VersionsAreAskedAbout) {
  std::string tag = "\"one\"", body = "first";
  there.fault = [&](const Request& request, int) -> Answer {
    const auto known = request.headers.find("if-none-match");
    if (known != request.headers.end() && known->second == tag) return {.status = 304};
    return LoopbackServer::object(request, body, tag);
  };
  const auto read = [](Store& store, const std::string& known) {
    std::promise<Store::VersionedRead> promise;
    store.read_version_async("a", {}, known, [&](auto outcome) {
      promise.set_value(std::move(std::get<Store::VersionedRead>(outcome)));
    });
    return promise.get_future().get();
  };
  Store::VersionedRead got = read(*open(), "");
  EXPECT_EQ(text(got.bytes), "first");
  EXPECT_EQ(got.version, "\"one\"");
  EXPECT_EQ(got.object_size, 5u);
  EXPECT_FALSE(got.unchanged);
  got = read(*open(), "\"one\"");
  EXPECT_TRUE(got.unchanged);
  EXPECT_FALSE(got.bytes);
  tag = "\"two\"";
  body = "second";
  got = read(*open(), "\"one\"");
  EXPECT_FALSE(got.unchanged);
  EXPECT_EQ(text(got.bytes), "second");
  there.fault = [&](const Request& request, int) -> Answer {
    const auto since = request.headers.find("if-modified-since");
    if (since != request.headers.end())
      return {.status = since->second == "Sat, 01 Jan 2000 00:00:00 GMT" ? 304 : 500};
    return {.headers = {{"Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT"}}, .body = "dated"};
  };
  got = read(*open(), "");
  EXPECT_EQ(text(got.bytes), "dated");
  EXPECT_TRUE(read(*open(), got.version).unchanged);
  there.fault = nullptr;
  got = read(*open(), "\"one\"");
  EXPECT_FALSE(got.bytes);
  EXPECT_FALSE(got.unchanged);
  there.fault = [](const Request&, int) { return Answer{.status = 304}; };
  EXPECT_EQ(code_of([&] { open()->read("a"); }), ErrorCode::io)
      << "304 is not an answer to a plain request";
}

TEST_F(ObjectStoreTest, DestructionEndsWhatIsNotDone) {
  there.fault = [](const Request&, int) { return Answer{.delay = milliseconds(60'000)}; };
  std::atomic<int> ended{0};
  {
    const auto store = open();
    for (int i = 0; i < 10; ++i)
      store->read_async("k" + std::to_string(i), i % 2 == 0 ? ByteRange{} : ByteRange{5, 5},
                        [&](ReadOutcome outcome) {
                          EXPECT_EQ(code_of([&] {
                                      std::rethrow_exception(std::get<std::exception_ptr>(outcome));
                                    }),
                                    ErrorCode::interrupted);
                          ++ended;
                        });
  }
  EXPECT_EQ(ended, 10);
}

TEST_F(ObjectStoreTest, StopEndsWhatIsNotDoneAndWhatComesLater) {
  const auto asked_later = std::make_shared<std::atomic<bool>>(false);
  there.fault = [asked_later](const Request& request, int) {
    if (request.target == "/later") *asked_later = true;
    if (request.target == "/busy") return Answer{.status = 503, .headers = {{"Retry-After", "40"}}};
    return Answer{.delay = milliseconds(60'000)};
  };
  const auto store = open();
  std::atomic<int> ended{0};
  const auto read = [&](const std::string& key, ByteRange range) {
    store->read_async(key, range, [&](ReadOutcome outcome) {
      EXPECT_EQ(code_of([&] { std::rethrow_exception(std::get<std::exception_ptr>(outcome)); }),
                ErrorCode::interrupted);
      ++ended;
    });
  };
  read("busy", {});
  while (there.server.requests() == 0) std::this_thread::sleep_for(milliseconds(1));
  for (int i = 0; i < 100; ++i)
    read("k" + std::to_string(i), i % 2 == 0 ? ByteRange{} : ByteRange{5, 5});
  std::thread blocked(
      [&] { EXPECT_EQ(code_of([&] { store->size("k"); }), ErrorCode::interrupted); });
  while (there.server.requests() < 10) std::this_thread::sleep_for(milliseconds(1));
  store->stop();
  blocked.join();
  EXPECT_EQ(ended, 101);
  read("later", {});
  read("later", {5, 5});
  EXPECT_EQ(ended, 103);
  EXPECT_EQ(code_of([&] { store->read("later"); }), ErrorCode::interrupted);
  EXPECT_EQ(code_of([&] { store->size("later"); }), ErrorCode::interrupted);
  store->stop();
  EXPECT_FALSE(*asked_later);  // requests of before may still be on their way to the server
}

TEST_F(ObjectStoreTest, ACallbackMayReadTheNext) {
  there.objects["/index"] = "7";
  there.objects["/data"] = "0123456789";
  const auto store = open();
  std::promise<std::string> got;
  store->read_async("index", {0, 1, true}, [&](ReadOutcome outcome) {
    const std::uint64_t at = std::stoull(text(std::get<std::optional<Buffer>>(outcome)));
    EXPECT_EQ(code_of([&] { store->read("data"); }), ErrorCode::internal)
        << "it may not wait there";
    store->read_async("data", {at, 2}, [&](ReadOutcome next) {
      got.set_value(text(std::get<std::optional<Buffer>>(next)));
    });
  });
  EXPECT_EQ(got.get_future().get(), "78");
}

TEST_F(ObjectStoreTest, AServerThatWantsOffsetsGetsThem) {
  there.objects["/a"] = pattern(1000);
  there.objects["/empty"] = "";
  for (const Answer& refusal :
       {Answer{.status = 416},
        Answer{.status = 416, .headers = {{"Content-Range", "bytes */1000"}}},
        Answer{.status = 400}, Answer{.status = 501},
        Answer{.status = 206, .headers = {{"Content-Range", "bytes 996-999/*"}}, .body = "xxxx"}}) {
    std::atomic<int> refused = 0, requests = 0;
    there.fault = [&](const Request& request, int) -> std::optional<Answer> {
      ++requests;
      const auto range = request.headers.find("range");
      if (range == request.headers.end() || !range->second.starts_with("bytes=-"))
        return std::nullopt;
      ++refused;
      return refusal;
    };
    const auto store = open();
    EXPECT_EQ(text(store->read("a", {0, 4, true})), pattern(1000).substr(996)) << refusal.status;
    EXPECT_EQ(requests, 3) << "the refusal, the size, the bytes";
    EXPECT_EQ(text(store->read("a", {0, 5000, true})), pattern(1000));
    EXPECT_EQ(text(store->read("empty", {0, 4, true})), "");
    EXPECT_EQ(text(store->read("none", {0, 4, true})), "(missing)");
    EXPECT_EQ(refused, 1) << "it is asked once";
  }
}

TEST_F(ObjectStoreTest, AServerThatDoesNotSayWhichRangeItSendsIsAskedForTheWhole) {
  there.objects["/a"] = pattern(1000);
  there.fault = [&](const Request& request, int) -> std::optional<Answer> {
    if (!request.headers.contains("range")) return std::nullopt;
    return Answer{.status = 206, .body = "xxx"};
  };
  const auto store = open();
  EXPECT_EQ(text(store->read("a", {2, 3})), pattern(1000).substr(2, 3));
  EXPECT_EQ(text(store->read("a", {0, 3, true})), pattern(1000).substr(997));
  EXPECT_EQ(text(store->read("a", {998, 30})), pattern(1000).substr(998));
  EXPECT_EQ(store->size("a"), 1000u);
  EXPECT_FALSE(store->speed()) << "ranges are not cheaper";
}

TEST_F(ObjectStoreTest, RefusalsThatAreNotOfTheRangeStayErrors) {
  there.objects["/a"] = pattern(1000);
  there.fault = [&](const Request&, int) { return Answer{.status = 400}; };
  std::string message;
  EXPECT_EQ(code_of([&] { open()->read("a", {0, 4, true}); }, &message), ErrorCode::io);
  EXPECT_THAT(message, HasSubstr("400"));
}

}  // namespace object_store_test

}  // namespace batchfs
