#include "engine/pipeline/waits/idle_timer.h"

#include <algorithm>

#include "engine/telemetry/trace.h"

namespace batchfs {

void IdleTimer::touch() {
  last_ = Trace::now();
  if (idle_ != UINT64_MAX) ticker_.arm(idle_ / 2);
}

bool IdleTimer::is_over(bool waiting) {
  std::uint64_t last = last_;
  if (last == 0 || idle_ == UINT64_MAX) return false;
  const std::uint64_t now = Trace::now();
  // A reader that arrives now keeps all that is cached.
  if (!waiting && now - std::min(now, last) >= idle_ && last_.compare_exchange_strong(last, 0))
    return true;
  ticker_.arm(idle_ / 2);
  return false;
}

}  // namespace batchfs
