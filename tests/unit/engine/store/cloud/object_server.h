#pragma once
// Objects on a loopback server, a store that reads them, and faults in between.

#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "engine/store/cloud/http_store.h"
#include "engine/store/cloud/object_store.h"
#include "tests/unit/engine/store/loopback_server.h"

namespace batchfs {

inline std::string text(const std::optional<Buffer>& buffer) {
  if (!buffer) return "(missing)";
  return {reinterpret_cast<const char*>(buffer->data()), buffer->size()};
}

/// The code of the error that `work` throws; its message goes to `*message`.
template <class Work>
ErrorCode code_of(Work&& work, std::string* message = nullptr) {
  try {
    work();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

/// Requests for "/KEY" are answered from `objects`, unless `fault` has an answer for them.
class ObjectServer {
 public:
  using Answer = LoopbackServer::Answer;
  using Request = LoopbackServer::Request;

  std::map<std::string, std::string> objects;  // by target; to be filled before the first request
  /// `nth` counts the requests for this target from 0.
  std::function<std::optional<Answer>(const Request& request, int nth)> fault;

  Answer answer(const Request& request) {
    int nth = 0;
    {
      const std::lock_guard lock(mutex_);
      nth = seen_[request.target]++;
    }
    if (fault)
      if (std::optional<Answer> wrong = fault(request, nth)) return *wrong;
    const auto it = objects.find(request.target);
    if (it == objects.end()) return {.status = 404, .body = "no such object"};
    return LoopbackServer::object(request, it->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> seen_;

 public:
  LoopbackServer server{[this](const Request& request) { return answer(request); }};
};

/// Quick retries, for tests.
inline RequestOptions quick_options() {
  RequestOptions options;
  options.timeout = 20;
  options.first_delay = 0.001;
  options.longest_delay = 0.01;
  return options;
}

struct ObjectStoreTest : ::testing::Test {
  using Answer = LoopbackServer::Answer;
  using Request = LoopbackServer::Request;

  ObjectServer there;
  std::shared_ptr<HttpClient> client = std::make_shared<HttpClient>();  // of the store opened last

  /// A store ends its client, so each has its own.
  std::unique_ptr<ObjectStore> open(RequestOptions options = quick_options()) {
    client = clients_.emplace_back(std::make_shared<HttpClient>());
    return std::make_unique<ObjectStore>(std::make_shared<HttpService>(there.server.url(), client),
                                         client, options);
  }

  static std::uint64_t counter(const Store& store, const std::string& name) {
    for (const Store::Counter& counter : store.counters())
      if (counter.name == name) return counter.value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  /// Nothing is left in flight, whatever happened. (A cancelled request ends a moment later.)
  void TearDown() override {
    clients_.push_back(client);
    for (const auto& each : clients_) {
      for (int i = 0;
           i < 2000 && (each->counters().in_flight != 0 || each->counters().waiting != 0); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(each->counters().in_flight, 0u);
      EXPECT_EQ(each->counters().waiting, 0u);
    }
  }

 private:
  std::vector<std::shared_ptr<HttpClient>> clients_;
};

}  // namespace batchfs
