#pragma once
// Reads a store again, in a thread of its own, on request and at intervals.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/log.h"

namespace batchfs {

/// Thread-safe.
class Refresher {
 public:
  using Done = std::function<void(std::string, std::exception_ptr)>;
  struct Options {
    /// Reads the store again; with `force` also its data if nothing seems to have changed. Returns
    /// the changes as JSON. Throws.
    std::function<std::string(bool force)> refresh;
    /// Drops older generations. Called at first, every second after a refresh until it returns
    /// false, and on request.
    std::function<bool()> sweep;
    std::chrono::duration<double> every{0};  // 0: on request only
  };

  /// `log` outlives it. Throws std::system_error if no thread can be created, so that begin(),
  /// which is called when nothing may fail any more, does not.
  explicit Refresher(Log& log);
  /// Like stop(), without a limit.
  ~Refresher();
  Refresher(const Refresher&) = delete;

  /// Call once.
  void begin(Options options);
  /// Requests a refresh. `done` is called once, from any thread, possibly before this returns.
  /// Requests during a reading share the next one.
  void ask(bool force, Done done);
  /// Requests a call of `sweep`, without waiting for it.
  void sweep_soon();
  /// Pending requests get Error{interrupted}. False if a reading does not end within `seconds`: its
  /// thread continues to run and to use the options.
  bool stop(double seconds);

 private:
  struct State {
    std::mutex mutex;  // guards the members below; not held while calling out
    std::condition_variable changed;
    std::vector<Done> waiting;
    bool forced = false;             // by a pending request
    std::optional<Options> options;  // set once, and constant then
    bool stopping = false, ended = false, sweep_asked = false;
  };
  static void run(State& state, Log& log);
  static void work(State& state, const Options& options, Log& log);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace batchfs
