#pragma once
// Reads a store again, in a thread of its own, for whoever asks and at intervals.

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
    /// Reads the store again; with `force` its data, too, where nothing seems to have changed.
    /// Returns what has changed, as JSON. Throws.
    std::function<std::string(bool force)> refresh;
    /// Called at first, every second after a refresh until it returns false, and when asked for:
    /// has older generations dropped.
    std::function<bool()> sweep;
    std::chrono::duration<double> every{0};  // 0: when asked only
  };

  /// `log` outlives it. Throws std::system_error where there can be no more threads: begin() is
  /// for a moment when nothing may fail any more.
  explicit Refresher(Log& log);
  /// As stop(), without a limit.
  ~Refresher();
  Refresher(const Refresher&) = delete;

  /// Once.
  void begin(Options options);
  /// `done` is called once, from any thread, possibly before this returns. Those that ask while the
  /// store is being read wait for the next reading, which they share.
  void ask(bool force, Done done);
  /// Has `sweep` called, without waiting for it.
  void sweep_soon();
  /// Those that wait get Error{interrupted}. False when a reading does not end within `seconds`:
  /// its thread lives on, and uses what the options use.
  bool stop(double seconds);

 private:
  struct State {
    std::mutex mutex;  // guards what follows; not held while calling out
    std::condition_variable changed;
    std::vector<Done> waiting;
    bool forced = false;             // by one of those that wait
    std::optional<Options> options;  // set once, and constant then
    bool stopping = false, ended = false, sweep_asked = false;
  };
  static void run(State& state, Log& log);
  static void work(State& state, const Options& options, Log& log);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace batchfs
