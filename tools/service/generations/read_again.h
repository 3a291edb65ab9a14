#pragma once
// Reading a store again, as `batchfs refresh` asks for it: a new generation, or none.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/service/generations/generation.h"

namespace batchfs {

/// Reads the store and the views again. Null when nothing has changed since `now` was read, unless
/// `force`: the data may have changed all the same. Tries
/// twice, a moment apart: a writer that appends resizes one array after the other. `check` throws
/// for what cannot be served. Throws what reading throws.
std::shared_ptr<Generation> read_again(const Generation& now, const GenerationOptions& options,
                                       Engine& engine, Log& log,
                                       const std::function<void(Generation&)>& check,
                                       bool force = false);

/// What `batchfs refresh --json` shows. `after`: null when nothing has changed. `fixed`: see
/// fixed_version().
std::string describe_changes(const Generation& before, const Generation* after,
                             const std::string& fixed = "");

/// Stores of generations, until nobody uses them. Not thread-safe.
class LeavingStores {
 public:
  explicit LeavingStores(Engine& engine) : engine_(engine) {}
  void add(const std::shared_ptr<Generation>& generation);
  /// Has the engine forget what it has still decoded for generations that are gone.
  void sweep();
  /// Stores that somebody uses.
  std::size_t count() const { return leaving_.size(); }

 private:
  struct Leaving {
    std::weak_ptr<Generation> generation;
    std::weak_ptr<Store> store;
  };
  Engine& engine_;
  std::vector<Leaving> leaving_;
};

}  // namespace batchfs
