#pragma once
// SIGINT, SIGTERM and SIGHUP for commands that report their partial result when interrupted.

#include <atomic>
#include <memory>

namespace batchfs {

/// The first signal while guarded sets a flag; a second one, or one while not guarded, ends the
/// process at once.
class Interruption {
 public:
  /// Precondition: no other thread was started, so that none takes the signals.
  Interruption();

  /// From now on the caller checks requested() several times a second.
  void guard() { state_->guarded = true; }
  bool requested() const { return state_->requested; }

 private:
  struct State {
    std::atomic<bool> guarded = false, requested = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace batchfs
