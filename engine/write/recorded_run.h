#pragma once
// Runs the units of a task and records completed ones, so that a killed run repeats
// few of them.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/write/region_runner.h"
#include "engine/write/run_record.h"

namespace batchfs {

class RecordedRun {
 public:
  /// All may be empty, and are called by the thread that calls run().
  struct Hooks {
    std::function<void(std::int64_t done, std::int64_t all)> progress;
    std::function<bool()> cancelled;  // asked several times a second
    /// Makes the other dependencies of a recorded unit durable, besides the output's own objects.
    /// Called by another thread, one call at a time.
    std::function<void()> before_save;
  };

  /// The record is open, and outlives this object. `save_every`: the work that a kill may lose.
  RecordedRun(RunRecord& record, Hooks hooks,
              std::chrono::milliseconds save_every = std::chrono::seconds(5));

  /// Sets where the progress begins and ends, in the caller's measure.
  void expect(std::int64_t done, std::int64_t all);

  /// Like run_regions(). Units noted by note_done() are recorded every `save_every`, and at the
  /// end, also after an error. False: it was cancelled. May be called again, for a second pass.
  bool run(const RegionLimits& limits, const std::function<std::shared_ptr<RegionWork>()>& next);

  /// For RegionWork::done: `amount` in the measure of the progress. Thread-safe.
  void note_done(std::int64_t unit, std::int64_t amount);
  /// For a long RegionWork::begin, which runs on the thread that calls run(): reports progress that
  /// is due, and begins to record it. Throws interrupted once the run is cancelled.
  void keep_up();

 private:
  bool tick();
  /// Notes units that are done. False: there are none.
  bool note_finished();
  void start_saving();
  void save();

  RunRecord& record_;  // its thread-safety: nothing is noted during saving_
  const Hooks hooks_;
  const std::chrono::milliseconds save_every_;
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now();
  std::int64_t all_ = 0;
  bool cancelled_ = false, save_failed_ = false;
  std::mutex mutex_;  // guards the fields below
  std::vector<std::int64_t> finished_;
  std::int64_t done_ = 0;
  /// Last: it uses the members above. Bringing objects to the disk may take many seconds, in which
  /// the thread that calls run() must start regions.
  std::future<void> saving_;
};

}  // namespace batchfs
