#pragma once
// Waits for messages of many sockets in one thread.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/base/descriptor.h"

namespace batchfs::handoff {

/// Thread-safe.
class SocketWatcher {
 public:
  /// Called in the watcher's thread when its socket has a message or has ended; must not wait.
  /// False: no more.
  using Readable = std::function<bool()>;

  SocketWatcher();
  /// Precondition: all sockets are removed.
  ~SocketWatcher();
  SocketWatcher(const SocketWatcher&) = delete;
  SocketWatcher& operator=(const SocketWatcher&) = delete;

  /// `socket` stays open until it is removed.
  void add(int socket, Readable readable);
  /// From then on, `readable` does not run. Not to be called by it.
  void remove(int socket);

 private:
  void run();

  const Descriptor events_, wake_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<int, std::shared_ptr<const Readable>> sockets_;
  int running_ = -1;  // the socket whose function runs
  bool stopping_ = false;
  std::thread thread_;  // last: uses the others
};

}  // namespace batchfs::handoff
