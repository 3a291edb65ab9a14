#pragma once
// Batches that were meant for GPU memory and come from the host: how many, and why.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/view/view.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// Thread-safe.
class FallbackLog {
 public:
  using Counts = std::array<std::uint64_t, kFallbacks>;  // by Fallback
  static constexpr std::array<const char*, kFallbacks> kNames{
      "none",       "by_number", "behind",      "past_end",
      "slots_held", "no_memory", "not_decoded", "failed"};

  struct Reason {
    Fallback why = Fallback::failed;
    std::string detail = {};   // for the log; empty: the text of `why`
    bool is_expected = false;  // not an error
  };
  static Reason reason_of(Fallback why);
  static Reason reason_of(const Error& error);

  /// `log` outlives it.
  explicit FallbackLog(Log& log) : log_(log) {}

  /// Counts a batch of the view, and logs the first of its kind.
  void count(const View& view, const Reason& reason);
  Counts counts() const;

 private:
  Log& log_;
  std::array<std::atomic<std::uint64_t>, kFallbacks> counts_{};
  std::mutex mutex_;  // guards logged_
  std::set<std::pair<std::string, Fallback>> logged_;
};

}  // namespace batchfs::handoff
