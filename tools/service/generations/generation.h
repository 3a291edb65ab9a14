#pragma once
// One reading of a store, as `mount` and `serve` serve it: its metadata, and the views made from
// it. A store that grows is read again; each reading is a generation, see
// fs/generations/generations.h.
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

/// What a store and its views are read with.
struct GenerationOptions {
  StoreOptions store;
  std::vector<std::string> views;      // files, and "-"
  std::optional<StandardInput> input;  // what "-" is
  CheckFile check_file;
  bool describes = true;  // reads the chosen group as a dataset, also without views
  /// Of a SessionState: the session that readings belong to. -1: none. Outlives every reading.
  int session = -1;
};

/// Not thread-safe while it is made, immutable then.
struct Generation {
  Generation() = default;
  /// The engine forgets all of it. Precondition: nobody reads it any more.
  ~Generation();
  Generation(const Generation&) = delete;

  /// Finds the samples of the views. From then on `engine`, which outlives it, may read it.
  void resolve(const GenerationOptions& options, Engine& engine, Log& log);

  /// What the numbers of files are made of, see SessionState; the same as long as nothing has
  /// changed. To be changed with the arithmetic of fs/tree.
  std::string identity() const;
  /// It is the newest reading of the session from now on, if it is not yet. Throws stale where
  /// another process has read the store again since this one continues its newest reading.
  void begin(int of_session);
  /// For readers of the hand-off.
  handoff::ReadingRecord reading_record() const { return {session, number}; }
  /// What batch-….json says of it, {"id": ...}: the same in every mount of the same state.
  Json snapshot() const;
  /// What status.json says of it: snapshot() and "read": "2026-11-21T14:02:11Z".
  Json reading() const;

  OpenedStore opened;
  std::shared_ptr<const Dataset> dataset;  // of the chosen group; null unless it `describes`
  std::vector<std::shared_ptr<const View>> views;
  std::time_t time = 0;       // when it was read
  std::uint32_t number = 0;   // of the session's reading; 0: none yet
  std::uint64_t session = 0;  // the session's id, with the number
  /// Of its objects, where it belongs to a session.
  VersionSlots::Table versions;
  std::unique_ptr<StateFiles> files;  // of a mount

 private:
  Engine* engine_ = nullptr;
  Budget::Reservation metadata_;
};

/// Opens the store and reads the views. In a session, its objects have no versions yet. Throws what
/// opening throws.
std::shared_ptr<Generation> read_generation(const GenerationOptions& options, Log& log);

/// Why reading the store again cannot show anything new, "tag v1"; empty where it can.
std::string fixed_version(const StoreOptions& options);
/// Throws invalid_argument where such a store is to be read every `refresh` seconds; 0: when asked.
void check_refresh(const StoreOptions& options, double refresh);

}  // namespace batchfs
