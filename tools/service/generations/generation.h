#pragma once
// One reading of a store that `mount` and `serve` serve: its metadata, and the views made from it.
// A store that grows is read again; each reading is a generation, see fs/generations/generations.h.
//
//   Engine engine({.memory = engine_memory(options.store)}, log);
//   auto generation = read_generation(options, log);
//   generation->resolve(options, engine, log);

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/pipeline/engine.h"
#include "engine/store/version_slots.h"
#include "fs/state_files.h"
#include "gpu/handoff/protocol.h"
#include "tools/cli/store_options.h"
#include "tools/cli/view_options.h"

namespace batchfs {

/// Options to read a store and its views.
struct GenerationOptions {
  StoreOptions store;
  std::vector<std::string> views;      // files, and "-"
  std::optional<StandardInput> input;  // the text of "-"
  CheckFile check_file;
  bool describes = true;  // reads the chosen group as a dataset, also without views
  /// Descriptor of the SessionState that readings belong to; -1: none. Outlives every reading.
  int session = -1;
};

/// Not thread-safe until resolve() returns, immutable afterwards.
struct Generation {
  Generation() = default;
  /// Makes the engine forget it. Precondition: it has no readers any more.
  ~Generation();
  Generation(const Generation&) = delete;

  /// Finds the samples of the views. From then on `engine`, which outlives it, may read it.
  void resolve(const GenerationOptions& options, Engine& engine, Log& log);

  /// Bytes of the engine's budget that it takes: metadata, labels and lists.
  std::uint64_t memory() const { return metadata_.bytes(); }

  /// Identity that the numbers of files depend on, see SessionState; equal as long as nothing has
  /// changed. Must change with the arithmetic of fs/tree.
  std::string identity() const;
  /// Makes this the newest reading of the session, if it is not yet. Throws stale if another process
  /// has read the store again since the reading that this one continues.
  void begin(int of_session);
  /// The record for readers of the hand-off.
  handoff::ReadingRecord reading_record() const { return {session, number}; }
  /// The snapshot in batch-….json, {"id": ...}: equal in every mount of the same state.
  Json snapshot() const;
  /// The reading in status.json: snapshot() and "read": "2026-11-21T14:02:11Z".
  Json reading() const;

  OpenedStore opened;
  std::shared_ptr<const Dataset> dataset;  // of the chosen group; null unless it `describes`
  std::vector<std::shared_ptr<const View>> views;
  std::time_t time = 0;       // when the store was read
  std::uint32_t number = 0;   // of the session's reading; 0: none yet
  std::uint64_t session = 0;  // the session's id, with the number
  /// Versions of its objects, if it belongs to a session.
  VersionSlots::Table versions;
  std::unique_ptr<StateFiles> files;  // of a mount

 private:
  Engine* engine_ = nullptr;
  Budget::Reservation metadata_;
};

/// Opens the store and reads the views. In a session, its objects have no versions yet. Throws the
/// errors of opening.
std::shared_ptr<Generation> read_generation(const GenerationOptions& options, Log& log);

/// Why reading the store again cannot show changes, "tag v1"; empty if it can.
std::string fixed_version(const StoreOptions& options);
/// Throws invalid_argument if such a store is to be read every `refresh` seconds; 0: on request.
void check_refresh(const StoreOptions& options, double refresh);

}  // namespace batchfs
