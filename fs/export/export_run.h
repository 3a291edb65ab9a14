#pragma once
// Exports the batches of an epoch: assembles them with the engine and puts them in a form.
//
// Units of work are noted when they are done (run_record.h), so that a run that ended at any moment
// is continued by the same command to the same bytes. Tasks own runs of units.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/pipeline/engine.h"
#include "engine/store/output/output_store.h"
#include "fs/export/export_form.h"

namespace batchfs {

struct ExportOptions {
  std::string form;
  ExportRange range;
  Compression compression;   // of the form zarr
  std::string source;        // names the store and its snapshot
  int threads = 0;           // 0: one per core
  std::uint64_t memory = 0;  // bytes for units, beside the engine's
  int task = 0, tasks = 1;
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // units
  std::function<bool()> cancelled;
};

struct ExportResult {
  enum class State : std::uint8_t { finished, task_done, interrupted } state = State::finished;
  std::int64_t units_done = 0;     // by this run
  std::int64_t units_skipped = 0;  // that earlier runs had done
};

/// Batches of a unit, so that an object has about `object_bytes` and units fit into the memory.
std::int64_t batches_per_unit(const View& view, std::int64_t first, std::int64_t end,
                              std::uint64_t object_bytes, std::uint64_t memory);

/// Blocks. Throws the first error; finished objects stay. Throws stale if a store changes
/// meanwhile, or has changed since the output was begun.
ExportResult run_export(Engine& engine, const ExportOptions& options,
                        const std::shared_ptr<OutputStore>& output);

}  // namespace batchfs
