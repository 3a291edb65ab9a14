#pragma once
// Copies arrays of a store to another Zarr store with other chunks.
//
// Values are copied as they are stored, without decoding of CF conventions. Memory is bounded,
// every stored byte is read once in a pass (see rechunk_plan.h), and a copy that was ended at any
// moment is continued by the next run with the same options, to the same bytes. Metadata is written
// last: an unfinished output is not a Zarr store.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/scan/source_versions.h"
#include "engine/store/output/output_store.h"
#include "engine/write/rechunk_arrays.h"

namespace batchfs {

/// The result of a run.
struct RechunkResult {
  enum class State : std::uint8_t {
    finished,     // the output is complete
    task_done,    // this task is; others are not
    first_pass,   // this task's share of the first pass is; others' are not
    interrupted,  // `cancelled` ended it
  } state = State::finished;
  std::uint64_t regions_done = 0;               // by this run
  std::uint64_t regions_skipped = 0;            // that earlier runs had done
  std::uint64_t objects = 0, stored_bytes = 0;  // put by this run, without metadata
};

struct RechunkRun {
  /// Where pieces of the first pass go; empty: to the output's working folder.
  std::string temporary;
  /// Decoded bytes done and all of this task, both passes. Called by the calling thread.
  std::function<void(std::int64_t done, std::int64_t all)> progress;
  /// Asked several times a second, by the calling thread.
  std::function<bool()> cancelled;
};

class Rechunk {
 public:
  /// Chooses the arrays and plans. Throws as choose_arrays() and plan_rechunk(). The store outlives
  /// it.
  Rechunk(std::shared_ptr<Store> store, std::shared_ptr<const Hierarchy> hierarchy,
          RechunkOptions options);
  ~Rechunk();

  const std::vector<RechunkArray>& arrays() const { return arrays_; }
  bool has_two_passes() const;
  /// Bytes of decoded values of all arrays with values of fixed size.
  std::uint64_t decoded_bytes() const;

  /// Does the share of this task. Throws the first error; completed work stays done. Throws stale
  /// when the store changes meanwhile, or has changed since the output was begun.
  RechunkResult run(const std::shared_ptr<OutputStore>& output, const RechunkRun& how);

 private:
  class Running;
  struct Threads {
    int read = 1, write = 1;
    std::uint64_t region_memory = 0;
  };
  Threads choose_threads() const;
  std::vector<SourceArray> source() const;
  /// Identifies the run in the output: see RunRecord. `source`: the versions of the arrays that it
  /// reads.
  Json identity(const Json& source) const;

  const std::shared_ptr<Store> store_;
  const std::shared_ptr<const Hierarchy> hierarchy_;
  const RechunkOptions options_;
  std::vector<RechunkArray> arrays_;
  Threads threads_;
};

}  // namespace batchfs
