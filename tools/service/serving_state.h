#pragma once
// What `batchfs serve` tells of its state over its socket: the texts that a mount has in .batchfs.

#include <cstdint>
#include <string>
#include <vector>

#include "fs/control/mount_state.h"
#include "gpu/handoff/server.h"
#include "tools/service/serving.h"

namespace batchfs {

/// Thread-safe. What it is made of outlives it.
class ServingState {
 public:
  struct Options {
    std::string socket;
    std::vector<std::string> views;  // files
    std::uint64_t memory = 0;        // bytes; 0: the default
  };
  ServingState(Options options, Engine& engine, const Store& store, const GpuDeliveries& gpus,
               const Log& log);

  /// Throws not_supported for a text that there is not.
  std::string text(const handoff::HandoffServer& server, handoff::StateText what) const;

 private:
  MountState state(const handoff::HandoffServer& server) const;

  const Options options_;
  Engine& engine_;
  const Store& store_;
  const GpuDeliveries& gpus_;
  const Log& log_;
  const std::uint64_t started_ = Trace::now();
};

}  // namespace batchfs
