#pragma once
// State of `batchfs serve` for its socket: the texts that a mount has in .batchfs.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fs/control/mount_state.h"
#include "gpu/handoff/server.h"
#include "tools/service/generations/generation.h"
#include "tools/service/serving.h"

namespace batchfs {

/// Thread-safe. The arguments outlive it.
class ServingState {
 public:
  struct Options {
    std::string socket;
    std::vector<std::string> views;  // files
    std::uint64_t memory = 0;        // bytes; 0: the default
    std::string group;               // as typed; empty: the root
  };
  ServingState(Options options, Engine& engine, std::shared_ptr<const Generation> newest,
               const GpuDeliveries& gpus, const Log& log);

  /// The store has been read again.
  void show(std::shared_ptr<const Generation> newest);

  /// Throws not_supported for an unknown text.
  std::string text(const handoff::HandoffServer& server, handoff::StateText what) const;

 private:
  std::string config_text() const;

  std::shared_ptr<const Generation> newest() const;
  MountState state(const handoff::HandoffServer& server) const;

  const Options options_;
  Engine& engine_;
  const GpuDeliveries& gpus_;
  const Log& log_;
  const std::uint64_t started_ = Trace::now();
  mutable std::mutex mutex_;  // guards newest_; no other lock is taken while it is held
  std::shared_ptr<const Generation> newest_;
};

}  // namespace batchfs
