#pragma once
// The generations of `batchfs serve`, like those of a mount in mounted_generations.h. Connected
// readers keep the one that they began with.

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
    /// Throws if the generation cannot be served.
    std::function<void(Generation&)> check;
  };
  /// The members of `environment` outlive it.
  ServedGenerations(std::shared_ptr<Generation> first, Environment environment);

  /// Reads the store again; readers that connect from now on see the new state. With `force` there
  /// is a new state even if nothing seems to have changed. Returns the changes as JSON. If it
  /// throws, nothing has changed. Call in one thread, like sweep().
  std::string refresh(bool force = false);
  /// Drops older generations that no reader uses. False when none is left.
  bool sweep();
  /// Call in the thread of refresh().
  std::shared_ptr<const Generation> newest() const { return newest_; }

 private:
  const Environment with_;
  std::shared_ptr<Generation> newest_;
  std::vector<std::shared_ptr<Generation>> older_;
  LeavingStores leaving_;
};

}  // namespace batchfs
