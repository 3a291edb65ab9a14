#pragma once
// Records the completed work of an output that is being written, so that the same command continues
// it.
//
// The output holds `.batchfs.json`, which identifies the run (run_identity.h), and while it is
// unfinished `.batchfs/done-TASK.json` of every task: which units of work are done. A unit is noted
// after all of its objects are on disk. The output's metadata is written last: an output that has
// it is finished.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/base/json.h"
#include "engine/store/output/output_store.h"

namespace batchfs {

/// A set of numbers, kept as ranges. Not thread-safe.
class NumberRanges {
 public:
  void add(std::int64_t number);
  bool contains(std::int64_t number) const;
  std::int64_t count() const;
  Json json() const;
  /// Throws corrupt.
  static NumberRanges parse(const JsonRef& json);

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  // first -> last
};

/// The record of one task. Not thread-safe.
class RunRecord {
 public:
  /// `identity` identifies the run: the same command on the same store has the same identity.
  RunRecord(OutputStore& output, Json identity, int task, int tasks);

  /// Takes the output for this run, or continues it. Throws invalid_argument when the output holds
  /// something else, naming it; access_denied or io when it cannot be written.
  void open();

  bool is_done(std::int64_t unit) const { return done_.contains(unit); }
  void note(std::int64_t unit) { done_.add(unit); }
  /// Makes noted units durable, after the objects themselves.
  void save();
  /// Notes that this task has done its share of a pass (0 or 1), and saves.
  void complete(int pass);
  /// Have all tasks done their share of it?
  bool all_complete(int pass);
  /// May this task do the final writes? False: another one does.
  bool may_finish();

 private:
  std::string key_of(int task) const;

  OutputStore& output_;
  const Json identity_;
  const int task_, tasks_;
  NumberRanges done_;
  bool complete_[2] = {false, false};
  std::unique_ptr<OutputStore::Lock> lock_, finish_lock_;
};

}  // namespace batchfs
