#pragma once
// Requests of the kernel that have no answer yet.
//
// Two may come to answer a request: the result, or a signal for the process that waits. The first
// one does, and the other finds nothing left. A signal may come while libfuse still sets up the
// request; it counts from when the request is started.
//
//   const Token token = requests.begin(answer);
//   (from now on interrupt(token) may come)
//   requests.start(token, cancel);
//   if (const auto answer = requests.take(token)) answer(...);

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace batchfs {

using RequestToken = std::uint64_t;

/// Thread-safe. `Answer`: a std::function.
template <class Answer>
class PendingRequests {
 public:
  /// Notes a request. It is not answered before it is started.
  RequestToken begin(Answer answer) {
    const std::lock_guard lock(mutex_);
    requests_[++last_].answer = std::move(answer);
    return last_;
  }

  /// From now on a signal calls `cancel`; if a signal has come already, calls it at once and
  /// returns false. Does nothing for an answered request.
  bool start(RequestToken token, std::function<void()> cancel) {
    {
      const std::lock_guard lock(mutex_);
      const auto it = requests_.find(token);
      if (it == requests_.end()) return true;
      if (!it->second.interrupted) {
        it->second.cancel = std::move(cancel);
        return true;
      }
    }
    cancel();
    return false;
  }

  /// The process that waits has got a signal.
  void interrupt(RequestToken token) {
    std::function<void()> cancel;
    {
      const std::lock_guard lock(mutex_);
      const auto it = requests_.find(token);
      if (it == requests_.end()) return;
      it->second.interrupted = true;
      cancel = it->second.cancel;
    }
    if (cancel) cancel();
  }

  /// Removes the request: the caller answers it. Null when it was answered.
  Answer take(RequestToken token) {
    const std::lock_guard lock(mutex_);
    const auto it = requests_.find(token);
    if (it == requests_.end()) return nullptr;
    Answer answer = std::move(it->second.answer);
    requests_.erase(it);
    return answer;
  }

 private:
  struct Request {
    Answer answer;
    std::function<void()> cancel;  // once it is started
    bool interrupted = false;
  };
  std::mutex mutex_;  // guards the members below; never held while calling out
  std::unordered_map<RequestToken, Request> requests_;
  RequestToken last_ = 0;
};

}  // namespace batchfs
