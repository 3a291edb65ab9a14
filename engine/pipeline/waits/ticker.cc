#include "engine/pipeline/waits/ticker.h"

#include "engine/telemetry/trace.h"

namespace batchfs {

void Ticker::arm(std::uint64_t pause) {
  const std::uint64_t at = Trace::now() + pause;
  const std::lock_guard lock(mutex_);
  if (next_ <= at) return;
  next_ = at;
  timer_.post(static_cast<std::int64_t>(at), [this, at] {
    {
      const std::lock_guard armed(mutex_);
      if (next_ != at) return;  // a sooner tick was requested meanwhile, and has run
      next_ = UINT64_MAX;
    }
    tick_();
  });
}

}  // namespace batchfs
