#pragma once
// The generations of `batchfs serve`, as mounted_generations.h has those of a mount. Readers that
// are connected keep the one that they began with.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/handoff/server.h"
#include "tools/service/generations/generation.h"
#include "tools/service/generations/read_again.h"

namespace batchfs {

class ServedGenerations {
 public:
  struct Environment {
    GenerationOptions options;
    Engine& engine;
    handoff::HandoffServer& handoff;
    Log& log;
    /// Throws for what cannot be served.
    std::function<void(Generation&)> check;
  };
  /// What `environment` refers to outlives it.
  ServedGenerations(std::shared_ptr<Generation> first, Environment environment);

  /// Reads the store again; readers that connect from now on see the new state. With `force` there
  /// is a new one also where nothing seems to have changed. Returns what has changed, as JSON.
  /// Throws, and then nothing has changed. In one thread, as sweep().
  std::string refresh(bool force = false);
  /// Drops older generations that no reader uses. False when none is left.
  bool sweep();
  /// In the thread of refresh().
  std::shared_ptr<const Generation> newest() const { return newest_; }

 private:
  const Environment with_;
  std::shared_ptr<Generation> newest_;
  std::vector<std::shared_ptr<Generation>> older_;
  LeavingStores leaving_;
};

}  // namespace batchfs
