#pragma once
// Reading a store again for `batchfs refresh`: a new generation, or none.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/service/generations/generation.h"

namespace batchfs {

/// Reads the store and the views again. Null if nothing has changed since `now` was read, unless
/// `force` is set: the data may still have changed. Tries twice, a moment apart: a writer that
/// appends resizes one array after the other. `check` throws for a generation that cannot be
/// served. Throws the errors of reading.
std::shared_ptr<Generation> read_again(const Generation& now, const GenerationOptions& options,
                                       Engine& engine, Log& log,
                                       const std::function<void(Generation&)>& check,
                                       bool force = false);

/// The output of `batchfs refresh --json`. `after`: null if nothing has changed. `fixed`: see
/// fixed_version().
std::string describe_changes(const Generation& before, const Generation* after,
                             const std::string& fixed = "");

/// Stores of generations that are still in use. Not thread-safe.
class LeavingStores {
 public:
  explicit LeavingStores(Engine& engine) : engine_(engine) {}
  void add(const std::shared_ptr<Generation>& generation);
  /// Makes the engine forget the decoded data of generations that are gone.
  void sweep();
  /// The number of stores in use.
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
