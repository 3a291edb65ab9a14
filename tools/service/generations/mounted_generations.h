#pragma once
// The generations of a mount, from one reading of its store to the next: implements `batchfs
// refresh` of a mount.

#include <functional>
#include <memory>
#include <string>

#include "fs/generations/generations.h"
#include "gpu/handoff/server.h"
#include "tools/service/generations/generation.h"
#include "tools/service/generations/read_again.h"

namespace batchfs {

class MountedGenerations {
 public:
  struct Environment {
    GenerationOptions options;
    Engine& engine;
    handoff::HandoffServer* handoff;  // may be null
    Log& log;
    /// Makes the files of a generation. Throws if it cannot be served.
    std::function<void(Generation&)> make_files;
    Generations::NameChanges names;
  };
  /// The members of `environment`, `inodes` and `engine` outlive it. Precondition: `first` is the
  /// session's newest reading. `on_crowded`: as for Generations.
  MountedGenerations(std::shared_ptr<Generation> first, KnownInodes& inodes, Engine& engine,
                     std::function<void()> on_crowded = {});

  Generations& files() { return generations_; }

  /// Reads the store again; files opened from now on show the new state. With `force` there is a
  /// new state even if nothing seems to have changed. Returns the changes as JSON. If it throws,
  /// nothing has changed. Call in one thread, like sweep().
  std::string refresh(const Environment& with, bool force = false);
  /// Makes the kernel forget its names of older generations, and drops unused ones. False when none
  /// is left.
  bool sweep(const Environment& with);

 private:
  void make_room(const Environment& with);

  std::shared_ptr<Generation> newest_;
  Generations generations_;
  LeavingStores leaving_;
};

}  // namespace batchfs
