#pragma once
// Reads every stored chunk of arrays and verifies it: stored size, decoding, checksums, shard
// indexes.
//
// Missing chunks are counted and are not damage. A chunk without a checksum (raw, Blosc) is
// verified only by its size and by decoding it: a changed value in it cannot be seen.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/scan/stored_objects.h"
#include "engine/scan/verify_report.h"
#include "engine/store/store.h"
#include "engine/view/view.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

struct VerifyTarget {
  std::shared_ptr<const ArrayMetadata> metadata;
  /// By chunk (of sharded arrays, the inner ones). nullopt: all that the store has, found by
  /// listing where the store can list, else by asking for each chunk of the grid.
  std::optional<ChunkSelection> chunks;
};

/// The chunks of a variable, a number in View::variables(), that the samples of a view reach.
VerifyTarget selected_chunks(const View& view, std::uint32_t variable);

struct VerifyOptions {
  int threads = 0;           // 0: one per core
  std::uint64_t memory = 0;  // bytes for stored and decoded chunks; 0: default_memory_budget()
  /// The share of the work: objects by a hash of their keys, and for the first task findings
  /// about whole arrays. merge_reports() merges the reports of all tasks.
  int task = 0, tasks = 1;
  /// Chunks done and all. Called from the thread that called verify_arrays().
  std::function<void(std::int64_t done, std::int64_t all)> progress;
  /// Asked several times a second, from the same thread; true ends the scan and marks the report
  /// interrupted.
  std::function<bool()> cancelled;
};

/// Blocks until all is read. Damage goes to `collector`; so do arrays that cannot be verified.
/// Throws for failures of this machine only (no memory for the scan itself).
void verify_arrays(const std::shared_ptr<Store>& store, const std::vector<VerifyTarget>& targets,
                   const VerifyOptions& options, VerifyCollector& collector);

/// Reads every entry of a disk cache and compares its checksum, whatever store it is of. Nothing is
/// changed: a damaged entry is dropped when it is next read. Throws not_found where the cache does
/// not exist.
void verify_cache(const std::string& directory, const VerifyOptions& options,
                  VerifyCollector& collector);

}  // namespace batchfs
