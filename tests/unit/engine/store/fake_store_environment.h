#pragma once
// Environment, files, servers and clock made of maps, for tests of credentials.

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/store/store_environment.h"

namespace batchfs {

struct FakeStoreEnvironment {
  std::map<std::string, std::string> variables;
  std::map<std::string, FileText> files;
  /// "GET http://host/path" -> status and body; anything else does not connect.
  std::map<std::string, std::pair<int, std::string>> answers;
  std::vector<HttpRequest> requests;
  WallTime time = std::chrono::system_clock::from_time_t(1440938160);  // 2015-08-30T12:36:00Z

  StoreEnvironment environment() {
    StoreEnvironment fake;
    fake.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto it = variables.find(name);
      return it == variables.end() || it->second.empty() ? std::nullopt : std::optional(it->second);
    };
    fake.file = [this](const std::string& path) -> std::optional<FileText> {
      const auto it = files.find(path);
      return it == files.end() ? std::nullopt : std::optional(it->second);
    };
    fake.fetch = [this](HttpRequest request) {
      requests.push_back(request);
      const auto it = answers.find(request.method + " " + request.url);
      if (it == answers.end()) throw Error(ErrorCode::io, "could not connect", request.url);
      return answer(it->second.first, it->second.second);
    };
    fake.now = [this] { return time; };
    return fake;
  }

  static HttpResponse answer(int status, const std::string& body, HttpHeaders headers = {}) {
    HttpResponse response;
    response.status = status;
    response.headers = std::move(headers);
    response.body = Buffer(body.size());
    if (!body.empty()) std::memcpy(response.body.data(), body.data(), body.size());
    return response;
  }
};

/// The Error that `body` throws; fails the test when there is none.
template <class Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::internal, "no error");
}

}  // namespace batchfs
