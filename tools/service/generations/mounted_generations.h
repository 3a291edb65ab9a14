#pragma once
// The generations of a mount, from one reading of its store to the next: what `batchfs refresh`
// does there.

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
    /// Makes the files of a generation. Throws for what cannot be served.
    std::function<void(Generation&)> make_files;
    /// Has the kernel give up a name.
    std::function<void(Ino, const std::string&)> forget_name;
  };
  /// What `environment` refers to, `inodes` and `engine` outlive it. Precondition: `first` is the
  /// session's newest reading. `on_crowded`: as that of Generations.
  MountedGenerations(std::shared_ptr<Generation> first, KnownInodes& inodes, Engine& engine,
                     std::function<void()> on_crowded = {});

  Generations& files() { return generations_; }

  /// Reads the store again; what is opened from now on sees the new state. With `force` there is a
  /// new one also where nothing seems to have changed. Returns what has changed, as JSON. Throws,
  /// and then nothing has changed. In one thread, as sweep().
  std::string refresh(const Environment& with, bool force = false);
  /// Has the kernel give up what it keeps of older generations, and drops those that nobody uses.
  /// False when none is left.
  bool sweep(const Environment& with);

 private:
  void make_room(const Environment& with);

  std::shared_ptr<Generation> newest_;
  Generations generations_;
  LeavingStores leaving_;
};

}  // namespace batchfs
